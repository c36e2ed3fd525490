"""LRU cache: the least recently used entries are evicted first."""

from backscroll.lru_cache import LRUCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache = LRUCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert len(cache) == cache.size == 2


def test_the_limit_can_be_in_bytes() -> None:
    cache = LRUCache[str, bytes](10, size_of=len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.size == 8
    cache.put("c", b"12345")
    assert "a" not in cache
    assert cache.size == 9


def test_an_entry_that_grows_is_counted_with_its_new_size() -> None:
    cache = LRUCache[str, bytearray](10, size_of=len)
    value = bytearray(b"1")
    cache.put("a", value)
    value += b"23456"
    cache.put("a", value)
    assert (cache.size, len(cache)) == (6, 1)


def test_an_entry_larger_than_the_limit_is_not_kept() -> None:
    cache = LRUCache[str, bytes](3, size_of=len)
    cache.put("a", b"1234")
    assert (cache.get("a"), cache.size, len(cache)) == (None, 0, 0)


def test_entries_can_be_removed() -> None:
    cache = LRUCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.discard("a")
    cache.discard("a")
    assert "a" not in cache
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)
