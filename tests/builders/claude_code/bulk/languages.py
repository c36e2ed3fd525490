"""Random sentences in languages other than English."""

from collections.abc import Callable
from itertools import accumulate
from random import Random

_VOCABULARY_SIZE = 3000  # words per language
_TABLE_SIZE = 1 << 15
_CLAUSE_WORDS = 5  # Chinese and Japanese have no spaces, but a comma about this often

_PORTUGUESE = """
    ção ões cor fun pre va lor são ar qui vo é lis ta con fi gu ra não ti po re a me di da ser per ma tes te
    do em uma os que para
"""
_FRENCH = """
    é tu dé mar che fon ction er reur mo dè le re sul tat fi chier su ppri mer de but à tre vo la ble les des
    une dans pour sur est
"""
_GERMAN = """
    ge än dert prü fung da tei wert schlüs sel über feh ler ver bin dung lö schen er geb nis für zu der die
    das und ist mit ein auf
"""
_RUSSIAN = """
    про вер ка фай ло оши бка ста ро из ме не ние дан ные по иск за пу ск те ст ключ но вый объ ект ё
"""
_HANZI = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工"
    "也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小"
    "物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形"
    "相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建"
    "月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长"
    "求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战"
    "先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受"
    "联什认六共权收证改清己美再采转更单风切打白教速花带"
)
_KANJI = (
    "検索結果変更追加削除修正確認実行関数変数設定接続処理時間画面文字列配列番号保存読込書込"
    "失敗成功原因問題解決必要場合次前後全部一覧"
)
_KATAKANA = "ファイル テスト エラー データ ユーザー サーバー キー コード メソッド クラス ログ ビルド"
_PARTICLES = "は が を に で の と から して です ます した する ない"


class LanguageSentences:
    """Endless stream of sentences in one language, with Zipf's law for its words."""

    def __init__(self, language: str, seed: str) -> None:
        self._rng = Random(f"{seed}:{language}")
        self._separator, self._comma, self._end, invent = _GRAMMARS[language]
        words = [invent(self._rng) for _ in range(_VOCABULARY_SIZE)]
        weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
        self._table = self._rng.choices(words, cum_weights=weights, k=_TABLE_SIZE)

    def sentence(self, word_count: int) -> str:
        start = int(self._rng.random() * (_TABLE_SIZE - word_count))
        words = self._table[start : start + word_count]
        clauses = [words[first : first + _CLAUSE_WORDS] for first in range(0, word_count, _CLAUSE_WORDS)]
        return self._comma.join(map(self._separator.join, clauses)).capitalize() + self._end


def _syllable_words(syllables: str) -> Callable[[Random], str]:
    return lambda rng: "".join(rng.choices(syllables.split(), k=rng.randrange(1, 5)))


def _chinese_word(rng: Random) -> str:
    """Return a word of one to three characters. One in 20 characters is rare."""
    return "".join(
        rng.choice(_HANZI) if rng.random() < 0.95 else chr(rng.randrange(0x4E00, 0x9FA0))
        for _ in range(rng.randrange(1, 4))
    )


def _japanese_word(rng: Random) -> str:
    particle = rng.choice(_PARTICLES.split())
    if rng.random() < 0.3:
        return rng.choice(_KATAKANA.split()) + particle
    return "".join(rng.choices(_KANJI, k=2)) + particle


# Between words, between clauses, at the end of a sentence, and the function that invents a word.
_GRAMMARS: dict[str, tuple[str, str, str, Callable[[Random], str]]] = {
    "portuguese": (" ", ", ", ".", _syllable_words(_PORTUGUESE)),
    "french": (" ", ", ", ".", _syllable_words(_FRENCH)),
    "german": (" ", ", ", ".", _syllable_words(_GERMAN)),
    "russian": (" ", ", ", ".", _syllable_words(_RUSSIAN)),
    "chinese": ("", "，", "。", _chinese_word),
    "japanese": ("", "、", "。", _japanese_word),
}
