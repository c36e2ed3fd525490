"""Passwords that are plain words, told by a context in which nothing else can stand.

A word after "password:" may be a type, a state or a label; one that a program is
started with, that an environment sets, or that stands beside its user is none of these.
"""

import re

__all__ = ["PASSWORD_CONTEXTS", "is_password_word"]

_LETTERS = r"(?P<secret>[A-Za-z]{6,64})"
_WORD = _LETTERS + r"(?P<after>[\w(.\[$-]?)"
_QUOTED = r"[bru]?\\{0,3}[\"']" + _LETTERS + r"\\{0,3}[\"'](?P<after>)"
_USER = r"(?i:\b(?:user(?:_?name)?|login|uid|usr))"
_NAME = r"(?i:pass(?:word|wd|phrase)?|pwd)"
_IS = r"\\{0,3}[\"']?\s{0,2}[:=]\s{0,2}"
_SERVICE = r"(?:DB|DATABASE|SMTP|MAIL|EMAIL|FTP|SFTP|REDIS|MYSQL|PG|POSTGRES|MONGO|ADMIN|ROOT|SSH|SUDO)_"

# A cheap clue, and the expression with the word.
PASSWORD_CONTEXTS: tuple[tuple[str, str], ...] = (
    (  # an environment: DB_PASSWORD=word, POSTGRES_PASSWORD: word
        r"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)[\"']?(?:=|: ?)",
        rf"\b(?P<name>[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE)|{_SERVICE}(?:PASS|PWD))"
        rf"[\"']?(?:=|: ?)[\"']?{_WORD}",
    ),
    (  # beside its user, in quotes: "user": "zoe", "password": "word"
        r"(?i:pass(?:word|wd|phrase)?|pwd)\\{0,3}[\"']?\s{0,2}[:=]",
        rf"{_USER}{_IS}\\{{0,3}}[\"'][^\"'\s]{{1,64}}[\"'],\s{{0,40}}\\{{0,3}}[\"']?{_NAME}{_IS}{_QUOTED}",
    ),
    (  # beside its user, in an address or a list of settings: user=zoe password=word
        r"(?i:pass(?:word|wd|phrase)?|pwd)=",
        rf"{_USER}=[^\s&;\"'=]{{1,64}}[ &;](?:\w{{1,30}}=[^\s&;\"'=]{{1,80}}[ &;]){{0,4}}{_NAME}={_WORD}",
    ),
    (  # in a file of settings, in the line after its user's
        r"(?i:pass(?:word|wd|phrase)?|pwd): ",
        rf"{_USER}: [\"']?[\w.@+-]{{1,64}}[\"']?\r?\n\s{{0,40}}{_NAME}: [\"']?{_WORD}[\"']?(?:\r?\n|$)",
    ),
    (  # what a program is started with
        r"(?:--pass|sshpass|mysql|mariadb|redis-cli|curl|login )",
        r"(?:\s--pass(?:word|wd|phrase)?=[\"']?|\bsshpass -p ?[\"']?|\bredis-cli\b[^\n|;]{0,200}?\s-a [\"']?"
        r"|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,200}?\s-p"
        r"|\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']+:|\blogin\s+\S+\s+password\s+)" + _WORD,
    ),
    (  # said of one's own: my password is "word"
        r"(?i:password|passphrase) is",
        r"(?i:\b(?:my|our|her|his|the)(?: \w{1,20})? (?:password|passphrase) is) [\"'`]"
        + _LETTERS
        + r"[\"'`](?P<after>)",
    ),
)

# What stands there instead: types, states, labels, variables, and what everybody has by default.
_OTHER_WORDS = """
string number boolean object unknown required optional missing invalid incorrect correct wrong expired empty
hidden masked hashed encrypted stored secret secrets secure passwd password passwords passphrase passwort
kennwort contrasena wachtwoord plaintext undefined changeit changeme example sample placeholder default public
private static return postgres postgresql mariadb mongodb rabbitmq docker vagrant minioadmin administrator
username userpass testpass testing tester developer development production value values variable prompt
interactive disabled enabled passed failed success failure nullable nonnull redacted removed unset unchanged
forgotten current strong random generated somepassword mypassword yourpassword dbpassword thepassword
newpassword oldpassword supersecret topsecret verysecret notasecret foobar foobarbaz
"""
_OTHERS = frozenset(_OTHER_WORDS.split())
_VARIABLE = re.compile(r"[a-z]+[A-Z]")
_MESSAGE = re.compile(  # names of texts about passwords, which many programs have
    r"(?:WRONG|INVALID|INCORRECT|ENTER|FORGOT|RESET|CHANGE|NEW|OLD|CONFIRM|REPEAT|SHOW|HIDE|MISSING|WEAK|NO|SET"
    r"|UPDATE|CURRENT|YOUR|BAD)_"
)


def is_password_word(word: str, name: str = "") -> bool:
    """Whether a word in such a place is a password, and neither a variable nor a word about passwords."""
    if _MESSAGE.match(name) or _VARIABLE.match(word):
        return False
    return word.lower() not in _OTHERS and len(set(word.lower())) > 2
