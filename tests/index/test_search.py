"""Search by words and filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.query import MessageFilter, parse
from backscroll.index.store import Index
from backscroll.model.workspace import workspace_hash
from tests.index.documents import DAY, NOON, found, message, write


def test_a_session_is_found_by_a_word_in_it(index: Index) -> None:
    write(index, [message("the cache is stale", 1), message("nothing", 2)])
    assert found(index, "Cache") == [1]


@pytest.mark.parametrize(
    "words",
    [
        "parseHTTPRequest", "parsehttprequest", "http", "Request", "snake_case_name", "snake", "case_name",
        "path/to/file.py", "file.py", "E1234", "1234", "cafe", "CAFÉ", "café", "strasse", "naïve",
    ],
)  # fmt: skip
def test_compound_words_are_found_whole_and_by_part(index: Index, words: str) -> None:
    text = "In path/to/file.py parseHTTPRequest calls snake_case_name: E1234 at the Café Straße, nai\u0308ve"
    write(index, [message(text, 1), message("something else", 2)])
    assert found(index, words) == [1]


@pytest.mark.parametrize("words", ["缓存", "缓", "用redis缓", "redis", "テスト", "ｷｬｯｼｭ", "캐시"])
def test_cjk_text_is_found_by_any_part(index: Index, words: str) -> None:
    write(index, [message("使用redis缓存。テスト キャッシュ 캐시를", 1), message("别的 东西 テキスト", 2)])
    assert found(index, words) == [1]


def test_cjk_characters_must_be_adjacent(index: Index) -> None:
    write(index, [message("缓和 存在")])
    assert found(index, "缓存") == []


def test_the_words_of_a_phrase_are_adjacent(index: Index) -> None:
    write(index, [message("redis cache", 1), message("cache for redis", 2)])
    assert found(index, '"redis cache"') == [1]


def test_a_quoted_word_does_not_match_a_subword(index: Index) -> None:
    write(index, [message("parseHttpRequest", 1), message("over http", 2)])
    assert found(index, '"http"') == [2]
    assert set(found(index, "http")) == {1, 2}


def test_a_prefix_matches_all_completions(index: Index) -> None:
    endings = [f"impo{number:03}" for number in range(200)]
    write(index, [message(f"the {word}", number) for number, word in enumerate(endings)])
    assert index.search(parse("impo*"), limit=1).total == 200
    assert index.search(parse('"the impo"*'), limit=1).total == 200
    assert index.search(parse('"a impo"*'), limit=1).total == 0


def test_words_can_be_excluded_or_alternatives(index: Index) -> None:
    write(index, [message("red apple", 1), message("green apple", 2), message("green pear", 3)])
    assert found(index, "apple -red") == [2]
    assert set(found(index, "red OR pear")) == {1, 3}
    assert set(found(index, "apple -role:tool")) == {1, 2}
    assert set(found(index, "pear OR -red")) == {2, 3}
    assert set(found(index, "-green OR -apple")) == {1, 3}
    assert set(found(index, "NOT red AND NOT pear")) == {2}
    assert found(index, "-red -green") == []


def test_a_question_finds_its_answer(index: Index) -> None:
    write(
        index,
        [
            message("We dropped the Redis cache: the importer read stale prices.", 1, role="assistant"),
            message("why did we do it in the end? the others were in favour", 2),
            message("redis is up", 3, role="tool"),
        ],
    )
    hits = index.search(parse("why did we drop the redis cache in the importer?"), limit=5)
    assert hits.hits[0].session == 1
    assert hits.with_inflections


def test_if_no_message_has_all_words_the_rarest_words_come_first(index: Index) -> None:
    write(index, [message("the importer runs", n) for n in range(10, 30)])
    write(index, [message("redis was stale", 1), message("the importer was slow", 2), message("nothing", 3)])
    hits = index.search(parse("is redis in the importer?"), limit=5)
    assert hits.hits[0].session == 1
    assert hits.is_relaxed
    assert hits.total is None
    assert {hit.session for hit in hits.hits} <= {1, 2, *range(10, 30)}


def test_words_in_several_messages_of_a_session_raise_its_rank(index: Index) -> None:
    write(index, [message("about redis", n, role="assistant") for n in (1, 2, 3)])
    write(index, [message("and the importer", 2, 1), message("a cache", 2, 2), message("a cache", 3, 1)])
    hits = index.search(parse("redis importer cache"), limit=5)
    assert [hit.session for hit in hits.hits] == [2, 3, 1]
    assert [hit.match_count for hit in hits.hits] == [3, 2, 1]


def test_session_ids_may_be_very_large(index: Index) -> None:
    many = [2**62 + n for n in (1, 2, 3)]
    write(index, (message(f"cache {n}", session, n) for session in many for n in range(400)))
    hits = index.search(parse("cache"), limit=5)
    assert {(hit.session, hit.match_count) for hit in hits.hits} == {(session, 400) for session in many}


def test_a_word_is_found_in_another_form_if_no_message_has_it_as_typed(index: Index) -> None:
    write(index, [message("we dropped all queries", 1), message("stopping", 2)])
    assert found(index, "drop query") == [1]
    assert found(index, "stopped") == [2]
    assert found(index, '"drop"') == []
    write(index, [message("drop it", 3)])
    assert found(index, "drop") == [3]


def test_a_cjk_question_finds_the_message_with_the_most_common_bigrams(index: Index) -> None:
    write(index, [message("ふりがなはrubyで書く", 1), message("別の話を書けばいい", 2), message("hello", 3)])
    hits = index.search(parse("ふりがなはどう書くの？"), limit=5)
    assert hits.is_relaxed
    assert hits.hits[0].session == 1


def test_all_words_are_required_if_a_message_has_them(index: Index) -> None:
    write(index, [message("redis redis redis", 1), message("the cache of redis", 2)])
    hits = index.search(parse("is the redis cache there"), limit=5)
    assert [hit.session for hit in hits.hits] == [2]
    assert not hits.is_relaxed


def test_a_query_of_stop_words_searches_for_them(index: Index) -> None:
    write(index, [message("to be or not", 1), message("to be", 2)])
    assert found(index, "not to") == [1]


def test_prose_ranks_before_tool_text(index: Index) -> None:
    text = "the importer is slow today"
    write(
        index, [message(text, 1, role="tool"), message(text, 2, role="user"), message(text, 3, role="tool")]
    )
    assert found(index, "importer")[0] == 2


def test_short_tool_text_ranks_before_long_prose(index: Index) -> None:
    prose = [message("ferry " + "oar " * 300, number // 100, number % 100) for number in range(400)]
    others = [message("oar " * 30, 4, number, role="tool") for number in range(100)]
    write(index, [*prose, *others, message("ferry", 1000, role="tool")])
    assert index.search(parse("ferry"), limit=1).hits[0].session == 1000


def test_a_subword_raises_the_score(index: Index) -> None:
    prose = [message("ferry", number) for number in range(30)]
    tools = [message("the ferry anOar aLamp theWood", number, 1, role="tool") for number in range(200)]
    write(index, [*prose, *tools, message("ferry FerryGate", 500)])
    assert index.search(parse("ferry"), limit=1).hits[0].session == 500


def test_the_newer_of_two_equal_messages_comes_first(index: Index) -> None:
    write(index, [message("the importer", 1, at=NOON - 60 * DAY), message("the importer", 2, at=NOON)])
    assert found(index, "importer") == [2, 1]


def test_a_much_better_match_ranks_first_despite_its_age(index: Index) -> None:
    long = "importer " + "and many other words " * 30
    write(index, [message("the importer", 1, at=NOON - 900 * DAY), message(long, 2, at=NOON)])
    assert found(index, "importer") == [1, 2]


def test_a_session_has_one_hit_with_its_best_message(index: Index) -> None:
    write(
        index,
        [
            message("about many things and among them, somewhere, the cache", 1, 0),
            message("cache", 1, 1),
            message("cache cache what", 2, 0),
        ],
    )
    hits = index.search(parse("cache"), limit=10)
    assert {(hit.session, hit.position, hit.match_count) for hit in hits.hits} == {(1, 1, 2), (2, 0, 1)}
    assert hits.total == 2
    assert index.search(parse("cache"), limit=10, by="message").total == 3


def test_filters(index: Index) -> None:
    write(
        index,
        [
            message("x", 1, role="tool", tool="Bash", is_error=True, paths=("/w/src/importer.py",)),
            message("x", 2, role="assistant", model="claude-opus-4-1-20250805", branch="feature/Cache"),
            message("x", 3, role="thinking", source="cursor", workspace_name="My Ferry"),
            message("x", 4, role="tool", tool="mcp__github__search", is_edit=True, workspace_hash="abc"),
            message("x", 5, workspace_hash=workspace_hash("/home/name/ferry"), kind="compaction"),
            message("", 6, role="thinking", kind="signed"),
            message("", 7, role="thinking", kind="redacted"),
        ],
    )
    for words, sessions in {
        "role:tool": {1, 4},
        "role:tool role:assistant": {1, 2, 4},
        "tool:bash": {1},
        "tool:mcp__*": {4},
        "tool:*git*": {4},
        "model:opus": {2},
        "model:sonnet": set(),
        "branch:feature/cache": {2},
        "source:cursor": {3},
        'workspace:"my ferry"': {3},
        "workspace:abc": {4},
        "workspace:/home/name/ferry": {5},
        "is:error": {1},
        "is:edit": {4},
        "has:thinking": {3},
        "role:thinking": {3, 6, 7},
        "x -has:thinking": {1, 2, 4, 5},
        "file:importer.py": {1},
        "file:src/imp*": {1},
        "file:exporter.py": set(),
        "-role:tool": {2, 3, 5, 6, 7},
        "x role:tool -is:edit": {1},
        "source:cursor OR is:error": {1, 3},
    }.items():
        assert set(found(index, words)) == sessions, words


@pytest.mark.parametrize(
    ("name", "sessions"),
    [
        ("資料", {1, 2}),
        ("資料/", {2}),
        ("資", {1, 2}),
        ("資料一覧.xlsx", {1}),
        ("一覧.xlsx", {1}),
        ("一覧", {1}),
        ("資料/メモ.py", {2}),
        ("メモ.p*", {2}),
        ("home/資料一", {1}),
        ("料資", set()),
        ("資料.xlsx", set()),
        ("覧", {1}),
        ("カタ", {3}),
        ("ｶﾀ", {3}),
    ],
)
def test_a_file_is_found_by_part_of_a_cjk_name(index: Index, name: str, sessions: set[int]) -> None:
    paths = ["/home/資料一覧.xlsx", "/home/資料/メモ.py", "/home/ｶﾀﾛｸﾞ.txt"]
    write(index, [message("x 資料", n, paths=(path,)) for n, path in enumerate(paths, start=1)])
    write(index, [message("資料 without a file", 9)])
    assert set(found(index, f"file:{name}")) == sessions


@pytest.mark.parametrize("words", ["ภาษา", "ไทย", "ไม่มี", "ນ້ຳ", "ពាក្យ", "စကား"])
def test_scripts_without_spaces_are_found_by_any_part(index: Index, words: str) -> None:
    write(index, [message("ภาษาไทยไม่มีช่องว่าง ແມ່ນ້ຳຂອງ មិនមានពាក្យ မြန်မာစကားပြော", 1), message("x", 2)])
    assert found(index, words) == [1]


def test_an_added_filter_does_not_replace_one_in_the_query(index: Index) -> None:
    write(index, [message("x", 1, role="tool"), message("x", 2)])
    query = parse("role:tool").with_filters(MessageFilter("role", "user"))
    assert index.search(query, limit=5).total == 0


def test_time_filters(index: Index) -> None:
    write(index, [message("x", number, at=NOON - number * DAY) for number in range(4)])
    write(index, [message("x", 9, at=None)])
    assert found(index, "since:2026-10-24T00:00Z") == [0, 1]
    assert found(index, "until:2026-10-23T00:00Z") == [3]
    assert found(index, "x since:2026-10-24T00:00Z until:2026-10-25T00:00Z") == [1]


def test_without_words_the_newest_comes_first_and_undated_messages_last(index: Index) -> None:
    write(index, [message("x", n, at=at) for n, at in [(1, NOON), (2, None), (3, NOON + 1), (4, NOON - 1)]])
    assert found(index, "role:user") == [3, 1, 4, 2]


def test_a_word_in_the_title_ranks_before_a_file_name(index: Index) -> None:
    write(index, [message("edited", 1, role="tool", paths=("notes/clocks.md",)), message("clocks clocks", 2)])
    write(index, [message("the night " + "oar " * 200, 3, title="The clocks went back", at=NOON - 90 * DAY)])
    assert found(index, "clocks") == [3, 2, 1]
    page = index.search(parse("clocks"), limit=2, offset=1)
    assert ([hit.session for hit in page.hits], page.total) == ([2, 1], 3)


def test_a_word_in_many_titles_lists_each_session_once(index: Index) -> None:
    write(index, [message("a ferry", n, title=f"Ferry {n}", at=NOON - n) for n in range(150)])
    write(index, [message("ferry", n, at=NOON) for n in range(150, 200)])
    sessions = [hit.session for hit in index.search(parse("ferry"), limit=1000).hits]
    assert sorted(sessions) == list(range(200))


def test_a_filter_also_applies_to_sessions_found_by_title(index: Index) -> None:
    write(index, [message("hello", 1, role="user", title="Clocks"), message("clocks", 2, role="tool")])
    assert found(index, "clocks role:tool") == [2]


def test_titles_and_paths_are_searchable(index: Index) -> None:
    write(index, [message("hello", 1, title="Faster timetables", paths=("docs/harbour.md",))])
    assert found(index, "timetables") == [1]
    assert found(index, "harbour") == [1]


@pytest.mark.parametrize("by", ["session", "message"])
def test_pages_are_consistent(index: Index, by: str) -> None:
    write(index, (message(f"cache {'word ' * (n % 7)}", n % 300, n // 300, at=NOON - n) for n in range(3000)))
    whole = []
    for offset in range(0, 3000, 100):
        page = index.search(parse("cache"), limit=100, offset=offset, by=by)  # type: ignore[arg-type]
        whole += [(hit.session, hit.position) for hit in page.hits]
        assert page.total == (300 if by == "session" else 3000)
    assert len(whole) == len(set(whole)) == (300 if by == "session" else 3000)
    if by == "session":
        assert {session for session, _ in whole} == set(range(300))


def test_a_search_without_counts_finds_the_same(index: Index) -> None:
    write(index, (message(f"cache {'word ' * (n % 7)}", n % 30, n // 30, at=NOON - n) for n in range(300)))
    counted = index.search(parse("cache"), limit=10)
    found = index.search(parse("cache"), limit=10, with_counts=False)
    assert (counted.total, found.total) == (30, None)
    places = [[(hit.session, hit.position, hit.score) for hit in page.hits] for page in (counted, found)]
    assert places[0] == places[1]


def test_a_session_with_very_many_matches_hides_no_other(index: Index) -> None:
    write(index, (message("cache cache", 1, n) for n in range(3000)))
    write(index, [message("somewhere in a longer text there is a cache", 2)])
    hits = index.search(parse("cache"), limit=5)
    assert [(hit.session, hit.match_count) for hit in hits.hits] == [(1, 3000), (2, 1)]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index(tmp_path_factory.mktemp("small"))
    index.rebuild()
    write(index, [message("a word, 中文 and é", 1), message("zz", 2)])
    return index


@given(st.text() | st.text(alphabet='ab"-*:O R中é\ud800().[]{}\\|?'))
def test_any_text_can_be_searched_for(small: Index, text: str) -> None:
    hits = small.search(parse(text), limit=5)
    if not any(map(str.isalnum, text)):
        assert hits.total == 0


@given(st.text(alphabet="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", max_size=12))
def test_punctuation_never_widens_a_search(small: Index, punctuation: str) -> None:
    harmless = punctuation.replace("-", " ").replace('"', " ").replace("*", " ").replace(":", " ")
    assert small.search(parse(f"word {harmless}"), limit=5).total == 1
    assert small.search(parse(f"absent {punctuation}"), limit=5).total == 0


@pytest.mark.parametrize("words", ["role:user " + "x" * 400, 'role:user file:"./"', 'file:"./"', "y" * 400])
def test_a_query_without_indexable_terms_finds_nothing(small: Index, words: str) -> None:
    assert small.search(parse(words), limit=5).total == 0


def test_a_page_outside_the_results_is_empty(small: Index) -> None:
    assert small.search(parse("word"), limit=0).hits == []
    assert small.search(parse("word"), limit=5, offset=9).hits == []
