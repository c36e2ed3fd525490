"""Split prose into sentences and classify them.

Phrases that mark decisions, reasons, dropped alternatives, open items, results and corrections have one
alternative per language: English, German, French, Spanish, Portuguese, Italian, Russian, Japanese, Chinese,
Korean. Languages without spaces have no word boundaries, so their phrases are matched anywhere.
`is_open_item`, `is_constraint` and `information_score` know English words only.
"""

import re
from collections.abc import Iterator

_CODE_BLOCK = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LIST_MARKER = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|>)\s+")
# Table rows, headings, introductions of lists.
_NOT_PROSE = re.compile(r"^\s*(?:\||#{1,6}\s|[-=*_]{3,}\s*$)|:\**\s*$")
_BOLD = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)"
    r"(?! (?:Januar|Februar|März|April|Mai|Ju[nl]i|August|September|Oktober|November|Dezember)\b)"  # „3. Mai“
    r"[\"')*`]*\s+(?=[\"'(*\[]*(?:`|(?![a-zß-öø-ÿа-яёα-ω_])\w))|(?<=[。！？])"
)
_MIN_SENTENCE_CHARS = 3
_MAX_SENTENCE_CHARS = 1000  # the rest of a longer one is ignored
_OPEN_ITEM = (
    r"\bopen(?:: | is | for | question)|\b(?:is|are|remains?|stays?|left) open\b|"
    r"\bnot\b[^.;]{0,40}\byet\b|"
    r"\b(?:(?-i:TODO|FIXME)|yet to|unresolved|undecided|follow[- ]?ups?|missing|untested|blocked|"
    r"(?:is|are|was|were|has been|have been) not (?:done|tested|committed|pushed|fixed|written|imported)|"
    r"still (?:has|have|needs?|carr\w+|fails?|missing|open|to)|remain(?:s|ing)|"
    r"some(?:one|body) (?:has|needs|must|should))\b|(?:^|\b)left: "
)
# Words that indicate an open item only in the last answer of a session.
_MAYBE_OPEN = (
    r"\b(?:open|left(?! out| alone| behind)|still|unclear|unknown|pending|next(?: steps?)?|for later|"
    r"there (?:is|are) no|needs? to|has to|have to|someone|until|unless|come back|waiting)\b"
)
_NOT_OPEN = r"\b(?:nothing|none)\b[^.]*\b(?:left|open|missing|remains?)\b"
_CONSTRAINT = (
    r"\b(?:don't|do not|doesn't|must|should|shall|never|always|only|instead|rather|prefer|let's|let us|keep|"
    r"avoid|without|no longer|not|no|use|stop|make sure|at (?:least|most)|has to|as a|counts? as|opt-in)\b"
)
_CONCLUSION = re.compile(
    r"\b(?:because|so that|therefore|instead|rather than|must|should|decid\w+|turns? out|cause[sd]?|never|"
    r"always|only|fixed|corrected|fail\w*|broken|broke|killed|works?|propos\w+|drops?|dropped|keeps?|uses?|chosen|"
    r"done|added|removed|replaced|means|exit code|not \w+ but|no longer)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_IDENTIFIER = re.compile(r"`[^`]+`|\b\w+_\w+\b|\b\w+\.\w{1,4}\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z]{2,}\b")


def _words(*languages: str) -> str:
    """Return a pattern for alternatives. Those in Latin or Cyrillic script match whole words."""
    spaced = [language for language in languages if re.search(r"[A-Za-zА-я]", language)]
    unspaced = [language for language in languages if language not in spaced]
    return "|".join([rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)", *unspaced])


_REASON = _words(
    r"because|since(?! (?:the |last |noon|then|yesterday|july))|so that|therefore|otherwise|that is why|"
    r"the reason|which means|due to|in order to|to avoid",
    r"weil|damit|sonst|deshalb|deswegen|daher|denn|andernfalls|um zu|zuliebe",
    r"parce que?|puisque|afin de|afin que?|sinon|donc|c'est pourquoi|pour éviter",
    r"porque|para que|de lo contrario|por eso|así que|ya que|debido a",
    r"porquê|pois|senão|por isso|para evitar",
    r"perché|affinché|altrimenti|perciò|quindi|poiché",
    r"потому что|чтобы|иначе|поэтому|так как",
    "ので|ため|から、|さもないと|によって",
    "因为|所以|否则|以便|由于|免得",
    "때문|므로|그래서|하도록|위해",
)
_SO = r"(?:[,;] (?:and )?so |^so )"  # "so" that gives a consequence
_PROPOSAL = _words(
    r"I(?: would|'d)(?! not be)|I (?:suggest|recommend|propose|prefer)|my (?:suggestion|recommendation)|"
    r"proposal|let's|"
    r"must|should|better to|instead|rather|prefer|we (?:drop|use|keep|take|need)|never|"
    r"is (?:enough|worth)|decided?|the plan is",
    r"ich würde|ich schlage|vorschlag|empfehle|sollten?|muss|müssen|statt|stattdessen|lieber|besser|"
    r"entschieden|nie|niemals",
    r"je propose|je suggère|je recommande|il faut|devrait|plutôt|au lieu|mieux vaut|jamais|on garde",
    r"propongo|sugiero|recomiendo|debe(?:ría)?|en lugar de|en vez de|mejor|nunca|hay que",
    r"proponho|sugiro|recomendo|deve(?:ria)?|em vez de|melhor",
    r"suggerisco|consiglio|dovrebbe|deve|invece|meglio|mai",
    r"предлагаю|рекомендую|лучше|следует|нужно|должн\w+|вместо|никогда",
    "べき|ほうがいい|方がいい|提案|代わりに|ではなく|必要があ|だけを|ことにし",
    "建议|应该|最好|必须|而不是|代替|改用|决定",
    "제안|추천|해야|대신|보다는|좋겠|결정",
)
_DROPPED = _words(
    r"(?:I|we) (?:did not|didn't|do not|don't|would not|wouldn't|won't)(?! (?:know|find|see|have|need|call))|"
    r"left (?:\S+ ){0,2}out|leave (?:\S+ ){0,2}out|leaving|not (?:through|by|via|now|kept|used|supported)|"
    r"instead of|rather than|no longer needed|would (?:need|touch|mean|make|break|require|have|take|work|be)|"
    r"(?:is|are|was|were) (?:dropped|rejected|omitted|skipped|discarded)|ruled out|decided against|"
    r"too (?:slow|complex|big)|"
    r"(?:for|at) no gain|gains? (?:only|no|nothing|little)|alternatively|not worth",
    r"nicht als|weggelassen|verworfen|statt(?:dessen)?|anstatt|verzichtet|wäre zu|würde (?:nur|zu)|"
    r"lohnt (?:sich )?nicht",
    r"laissé de côté|écarté|plutôt que|au lieu de|ne vaut pas|abandonné",
    r"descartad\w+|en lugar de|en vez de|no vale|dejé fuera|omití",
    r"descartad\w+|em vez de|não vale",
    r"scartat\w+|invece di|non vale|tralasciat\w+",
    r"отказались|вместо|не стал\w*|отброс\w+|не стоит",
    "使わない|やめ|見送|代わりに|ではなく|除外",
    "放弃|没有采用|而不是|不值得|排除",
    "제외|대신|포기|않기로",
)
_OPEN = _words(
    r"not (?:written|set|done|handled|shown|converted|imported|covered)|to be done|on hold|until then|"
    r"for now|waits? (?:for|until)|open:",
    r"offen|noch nicht|ungelöst|fehlt noch|steht aus|später|bleibt zu",
    r"pas encore|reste à|non résolu|à faire|plus tard",
    r"todavía no|aún no|pendiente|falta|sin resolver|por hacer",
    r"ainda não|pendente|por resolver|falta",
    r"non ancora|in sospeso|irrisolt\w+|da fare|resta da",
    r"ещё не|еще не|не решен\w*|осталось|пока не",
    "未解決|まだ|残って|今後|未対応|後で",
    "尚未|还没|未解决|待办|以后再",
    "아직|미해결|남아|나중에",
)
_RESULT = _words(
    r"now|became|fixed|works?|done|passes|pass|green|added|removed|corrected|takes? [\d.,]+|"
    r"instead of \d|"
    r"is (?:in|back|on)|are (?:in|read|checked|covered)|finished|faster",
    r"jetzt|nun|fertig|behoben|läuft|funktioniert|erledigt|ergänzt",
    r"maintenant|corrigé|terminé|fonctionne|ajouté|fait",
    r"ahora|corregid\w+|listo|funciona|añadid\w+|hecho",
    r"agora|corrigid\w+|pronto|funciona|feito",
    r"adesso|ora|corrett\w+|fatto|funziona|aggiunt\w+",
    r"теперь|исправ\w+|готово|работает|добав\w+",
    "しました|できました|なりました|変換します|完了",
    "现在|已经|修复|完成|添加了",
    "이제|완료|수정했|추가했|됩니다",
)
_CORRECTION = (
    r"^\W*(?:no\b(?! (?:need|problem|worries|rush))|not\b|don't|do not|stop\b|wait\b|wrong|"
    r"that's (?:not|wrong)|that is (?:not|wrong)|"
    r"undo|revert|never mind|actually|why did you|you (?:forgot|missed|broke|should not|shouldn't)|"
    r"nein\b|nicht\b|stopp?\b|falsch|das ist falsch|halt\b|doch nicht|non\b|arrête|faux|ce n'est pas|"
    r"para\b|incorrecto|eso no|mal\b|não\b|errado|sbagliato|fermati|нет\b|стоп|неправильно|не надо|"
    r"いや|違う|違います|待って|やめて|だめ|不对|不是|停|错|아니|잠깐|틀렸)"
)
_CORRECTION_ANYWHERE = _words(
    r"as (?:I|you) said|I (?:said|meant|asked for)|that broke|still (?:broken|fails|wrong)|"
    r"again\b.*wrong|throw it away",
    r"wie gesagt|ich meinte|immer noch (?:falsch|kaputt)",
    r"j'ai dit|je voulais dire|toujours (?:cassé|faux)",
    r"como dije|quise decir|sigue (?:roto|fallando)",
    "と言った|そうじゃなく|まだ壊れ",
    "我说的是|还是不对",
    "라고 했|여전히 안",
)
_AGREEMENT = (
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|good|great|fine|agreed|sure|convinced|do (?:it|that)|like that|"
    r"exactly|perfect|right|"
    r"sounds good|go ahead|ja\b|gut|genau|einverstanden|passt|mach|oui|d'accord|parfait|vas-y|sí|vale|"
    r"de acuerdo|"
    r"perfecto|sim\b|certo|va bene|да\b|хорошо|согласен|давай|はい|いい|お願い|それで|好|可以|是的|对|"
    r"네|좋아|그래)"
)
_ACKNOWLEDGEMENT = (
    r"^\W*(?:go on|continue|proceed|carry on|thanks?(?: you)?|weiter|mach weiter|danke|continue[sz]?|"
    r"merci|sigue|"
    r"gracias|continua|obrigad[oa]|grazie|avanti|дальше|спасибо|продолжай|続けて|"
    r"ありがとう(?:ございます)?|继续|谢谢|계속|감사\w*|"
    r"ok(?:ay)?|yes|ja|oui|sí|da|good|great|perfect|nice|cool|done|committed|understood|fertig|noted)"
    r"(?: (?:with|mit|avec|con) \S+)?[\s.!。！]*$"
)
_ONLY = r"\bonly\b[^.]*\bwould\b|\bbut\b[^.]*:"
_WHY = _words(
    r"why|how come|(?:is|are|was|does|do|would|isn't|doesn't|wouldn't)\b[^?]*\bnot|isn't|doesn't|"
    r"wouldn't|better than",
    r"warum|wieso|weshalb",
    r"pourquoi",
    r"por qué",
    r"por que",
    r"perché",
    r"почему|зачем",
    "なぜ|どうして|なんで",
    "为什么|为何",
    "왜",
)
_STILL_DID = r"\bstill \w+ed\b"  # in the past
_PRONOUN = (
    r"^(?:(?:they|it|that|this|these|those|both|which|sie|das|dies\w*|es|beides|ils?|elles?|ça|cela|eso|esto|ellos|"
    r"isso|isto|questo|они|это|он[аи]?)\b|これ|それ|この|その|这|它|그것|이것)"
)
_MAX_OPEN_CHARS = 400


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without code blocks. Each is an exact part of the text.

    A list item is a sentence of its own.
    """
    for line in _CODE_BLOCK.sub("\n", text).splitlines():
        if _NOT_PROSE.search(line):
            continue
        line, start = _LIST_MARKER.sub("", line).strip(), 0
        ends = [found.start() + len(found[0].rstrip()) for found in _SENTENCE_END.finditer(line)]
        for end in [*ends, len(line)]:
            part = line[start:end].strip()
            start = end
            if _is_sentence(part):
                yield part


def plain_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without bold type. The rest of a very long one is omitted."""
    for sentence in sentences(text):
        part = _BOLD.sub("", sentence).strip(" *_")[:_MAX_SENTENCE_CHARS]
        if _is_sentence(part):
            yield part


def _is_sentence(part: str) -> bool:
    return len(part) >= _MIN_SENTENCE_CHARS and any(map(str.isalnum, part))


def _has(pattern: str, text: str) -> bool:
    # Compiled on first use, and then in the cache of `re`: at import, all of them would take 8 ms.
    return re.search(pattern, text, re.IGNORECASE) is not None


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return sentence.rstrip("\"'`)* ").endswith(("?", "？"))


def is_open_item(sentence: str, *, is_last: bool = False) -> bool:
    """Return whether a sentence mentions unfinished work. More words count in the last answer."""
    if _has(_NOT_OPEN, sentence):
        return False
    return _has(_OPEN_ITEM, sentence) or (is_last and _has(_MAYBE_OPEN, sentence))


def is_constraint(sentence: str) -> bool:
    """Return whether a sentence states a requirement or a preference."""
    return _has(_CONSTRAINT, sentence)


def information_score(sentence: str) -> int:
    """Score the information in a sentence from 0 to 4: conclusions, numbers, names."""
    conclusions = min(2, len(_CONCLUSION.findall(sentence)))
    return conclusions + (_NUMBER.search(sentence) is not None) + (_IDENTIFIER.search(sentence) is not None)


def is_reasoned(sentence: str) -> bool:
    """Return whether a sentence gives a reason."""
    return _has(_REASON, sentence) or _has(_SO, sentence)


def is_proposal(sentence: str) -> bool:
    """Return whether a sentence proposes or states a choice."""
    return _has(_PROPOSAL, sentence)


def is_dropped(sentence: str) -> bool:
    """Return whether a sentence names something that was considered and not done."""
    return _has(_DROPPED, sentence) or _has(_ONLY, sentence)


def is_open(sentence: str, *, is_last: bool = False) -> bool:
    """Return whether a sentence mentions unfinished work, in any of the ten languages."""
    if len(sentence) > _MAX_OPEN_CHARS:
        return False
    if _has(_OPEN, sentence) or is_open_item(sentence):
        return True
    return is_last and not _has(_STILL_DID, sentence) and is_open_item(sentence, is_last=True)


def is_continuation(sentence: str) -> bool:
    """Return whether a sentence starts with a pronoun, so that it belongs to the one before."""
    return _has(_PRONOUN, sentence)


def is_rationale_question(text: str) -> bool:
    """Return whether a question asks for the reason of a choice."""
    return _has(_WHY, text)


def is_report_of_result(sentence: str) -> bool:
    """Return whether a sentence reports what was achieved."""
    return _has(_RESULT, sentence)


def is_correction(text: str) -> bool:
    """Return whether a user message stops or corrects the assistant."""
    return _has(_CORRECTION, text) or _has(_CORRECTION_ANYWHERE, text)


def starts_with_agreement(text: str) -> bool:
    """Return whether a user message starts with consent."""
    return _has(_AGREEMENT, text)


def is_acknowledgement(sentence: str) -> bool:
    """Return whether a sentence only acknowledges or asks to continue: a phrase or a single word."""
    is_word = sentence.isascii() and sentence.rstrip(".!").isalpha()
    return is_word or _has(_ACKNOWLEDGEMENT, sentence)
