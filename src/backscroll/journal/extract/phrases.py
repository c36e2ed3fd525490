"""Phrases that mark decisions, reasons, dropped alternatives, open items, results and corrections.

One alternative per language: English, German, French, Spanish, Portuguese, Italian, Russian, Japanese,
Chinese, Korean. Languages without spaces have no word boundaries, so their phrases are matched anywhere.
"""

import re

from backscroll.render.handoff.sentences import is_open_item

__all__ = [
    "is_acknowledgement",
    "is_continuation",
    "is_correction",
    "is_dropped",
    "is_open",
    "is_perhaps_open",
    "is_proposal",
    "is_rationale_question",
    "is_reasoned",
    "is_report_of_result",
    "starts_with_agreement",
]


def _words(*languages: str) -> re.Pattern[str]:
    """Compile alternatives. Those in Latin or Cyrillic script match whole words."""
    spaced = [language for language in languages if re.search(r"[A-Za-zА-я]", language)]
    unspaced = [language for language in languages if language not in spaced]
    pattern = rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)"
    return re.compile("|".join([pattern, *unspaced]), re.IGNORECASE)


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
_SO = re.compile(r"(?:[,;] (?:and )?so |^so )", re.IGNORECASE)  # "so" that gives a consequence
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
_CORRECTION = re.compile(
    r"^\W*(?:no\b(?! (?:need|problem|worries|rush))|not\b|don't|do not|stop\b|wait\b|wrong|"
    r"that's (?:not|wrong)|that is (?:not|wrong)|"
    r"undo|revert|never mind|actually|why did you|you (?:forgot|missed|broke|should not|shouldn't)|"
    r"nein\b|nicht\b|stopp?\b|falsch|das ist falsch|halt\b|doch nicht|non\b|arrête|faux|ce n'est pas|"
    r"para\b|incorrecto|eso no|mal\b|não\b|errado|sbagliato|fermati|нет\b|стоп|неправильно|не надо|"
    r"いや|違う|違います|待って|やめて|だめ|不对|不是|停|错|아니|잠깐|틀렸)",
    re.IGNORECASE,
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
_AGREEMENT = re.compile(
    r"^\W*(?:yes|yep|yeah|ok(?:ay)?|good|great|fine|agreed|sure|convinced|do (?:it|that)|like that|"
    r"exactly|perfect|right|"
    r"sounds good|go ahead|ja\b|gut|genau|einverstanden|passt|mach|oui|d'accord|parfait|vas-y|sí|vale|"
    r"de acuerdo|"
    r"perfecto|sim\b|certo|va bene|да\b|хорошо|согласен|давай|はい|いい|お願い|それで|好|可以|是的|对|"
    r"네|좋아|그래)",
    re.IGNORECASE,
)
_ACKNOWLEDGEMENT = re.compile(
    r"^\W*(?:go on|continue|proceed|carry on|thanks?(?: you)?|weiter|mach weiter|danke|continue[sz]?|"
    r"merci|sigue|"
    r"gracias|continua|obrigad[oa]|grazie|avanti|дальше|спасибо|продолжай|続けて|"
    r"ありがとう(?:ございます)?|继续|谢谢|계속|감사\w*|"
    r"ok(?:ay)?|yes|ja|oui|sí|da|good|great|perfect|nice|cool|done|committed|understood|fertig|noted)"
    r"(?: (?:with|mit|avec|con) \S+)?[\s.!。！]*$",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\bonly\b[^.]*\bwould\b|\bbut\b[^.]*:", re.IGNORECASE)
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
_STILL_DID = re.compile(r"\bstill \w+ed\b", re.IGNORECASE)  # in the past
_PRONOUN = re.compile(
    r"(?:they|it|that|this|these|those|both|which|sie|das|dies\w*|es|beides|ils?|elles?|ça|cela|eso|esto|ellos|"
    r"isso|isto|questo|они|это|он[аи]?)\b|これ|それ|この|その|这|它|그것|이것",
    re.IGNORECASE,
)
_MAX_OPEN_CHARS = 400


def is_reasoned(sentence: str) -> bool:
    """Return whether a sentence gives a reason."""
    return bool(_REASON.search(sentence) or _SO.search(sentence))


def is_proposal(sentence: str) -> bool:
    """Return whether a sentence proposes or states a choice."""
    return _PROPOSAL.search(sentence) is not None


def is_dropped(sentence: str) -> bool:
    """Return whether a sentence names something that was considered and not done."""
    return bool(_DROPPED.search(sentence) or _ONLY.search(sentence))


def is_open(sentence: str) -> bool:
    """Return whether a sentence mentions unfinished work."""
    return len(sentence) <= _MAX_OPEN_CHARS and bool(_OPEN.search(sentence) or is_open_item(sentence))


def is_perhaps_open(sentence: str) -> bool:
    """Return whether a sentence mentions unfinished work if it is in the last answer of a session."""
    if len(sentence) > _MAX_OPEN_CHARS or _STILL_DID.search(sentence):
        return False
    return is_open_item(sentence, is_last=True)


def is_continuation(sentence: str) -> bool:
    """Return whether a sentence starts with a pronoun, so that it belongs to the one before."""
    return _PRONOUN.match(sentence) is not None


def is_rationale_question(text: str) -> bool:
    """Return whether a question asks for the reason of a choice."""
    return _WHY.search(text) is not None


def is_report_of_result(sentence: str) -> bool:
    """Return whether a sentence reports what was achieved."""
    return _RESULT.search(sentence) is not None


def is_correction(text: str) -> bool:
    """Return whether a user message stops or corrects the assistant."""
    return bool(_CORRECTION.search(text) or _CORRECTION_ANYWHERE.search(text))


def starts_with_agreement(text: str) -> bool:
    """Return whether a user message starts with consent."""
    return _AGREEMENT.search(text) is not None


def is_acknowledgement(sentence: str) -> bool:
    """Return whether a sentence only acknowledges or asks to continue: a phrase or a single word."""
    is_word = sentence.isascii() and sentence.rstrip(".!").isalpha()
    return is_word or _ACKNOWLEDGEMENT.search(sentence) is not None
