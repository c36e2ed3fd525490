"""Detect passwords that are plain words, by a context that only a password fits.

A word after "password:" may be a type, a state or a label. A word in a command line, in an environment
variable or next to a user name is none of these.
"""

import re

__all__ = ["PASSWORD_CONTEXTS", "is_password_word"]

_LETTERS = r"(?P<secret>[A-Za-z]{6,64})"
_WORD = _LETTERS + r"(?P<after>[\w(.\[$-]?)"
_QUOTED = r"[bru]?\\{0,3}[\"']" + _LETTERS + r"\\{0,3}[\"'](?P<after>)"
_USER = r"(?i:\b(?:user(?:_?name)?|login|uid|usr))"
_NAME = r"(?i:pass(?:word|wd|phrase)?|pwd)"
_SEPARATOR = r"\\{0,3}[\"']?\s{0,2}[:=]\s{0,2}"
_SERVICE = r"(?:DB|DATABASE|SMTP|MAIL|EMAIL|FTP|SFTP|REDIS|MYSQL|PG|POSTGRES|MONGO|ADMIN|ROOT|SSH|SUDO)_"

# A prefilter that is cheap to match, and the pattern that captures the word.
PASSWORD_CONTEXTS: tuple[tuple[str, str], ...] = (
    (  # environment variables: DB_PASSWORD=word, POSTGRES_PASSWORD: word
        r"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)[\"']?(?:=|: ?)",
        rf"\b(?P<name>[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE)|{_SERVICE}(?:PASS|PWD))"
        rf"[\"']?(?:=|: ?)[\"']?{_WORD}",
    ),
    (  # next to a user name, in quotes: "user": "zoe", "password": "word"
        r"(?i:pass(?:word|wd|phrase)?|pwd)\\{0,3}[\"']?\s{0,2}[:=]",
        rf"{_USER}{_SEPARATOR}\\{{0,3}}[\"'][^\"'\s]{{1,64}}[\"'],\s{{0,40}}\\{{0,3}}[\"']?{_NAME}{_SEPARATOR}{_QUOTED}",
    ),
    (  # next to a user name, in a URL or a connection string: user=zoe password=word
        r"(?i:pass(?:word|wd|phrase)?|pwd)=",
        rf"{_USER}=[^\s&;\"'=]{{1,64}}[ &;](?:\w{{1,30}}=[^\s&;\"'=]{{1,80}}[ &;]){{0,4}}{_NAME}={_WORD}",
    ),
    (  # in a settings file, on the line after the user name
        r"(?i:pass(?:word|wd|phrase)?|pwd): ",
        rf"{_USER}: [\"']?[\w.@+-]{{1,64}}[\"']?\r?\n\s{{0,40}}{_NAME}: [\"']?{_WORD}[\"']?(?:\r?\n|$)",
    ),
    (  # command-line arguments
        r"(?:--pass|sshpass|mysql|mariadb|redis-cli|curl|login )",
        r"(?:\s--pass(?:word|wd|phrase)?=[\"']?|\bsshpass -p ?[\"']?|\bredis-cli\b[^\n|;]{0,200}?\s-a [\"']?"
        r"|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,200}?\s-p"
        r"|\bcurl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']+:|\blogin\s+\S+\s+password\s+)" + _WORD,
    ),
    (  # in prose: my password is "word"
        r"(?i:password|passphrase) is",
        r"(?i:\b(?:my|our|her|his|the)(?: \w{1,20})? (?:password|passphrase) is) [\"'`]"
        + _LETTERS
        + r"[\"'`](?P<after>)",
    ),
)

# Words that appear there and are no secret: types, states, labels, variables, well-known defaults.
_COMMON_WORDS = """
string number boolean object unknown required optional missing invalid incorrect correct wrong expired empty
hidden masked hashed encrypted stored secret secrets secure passwd password passwords passphrase passwort
kennwort contrasena wachtwoord plaintext undefined changeit changeme example sample placeholder default public
private static return postgres postgresql mariadb mongodb rabbitmq docker vagrant minioadmin administrator
username userpass testpass testing tester developer development production value values variable prompt
interactive disabled enabled passed failed success failure nullable nonnull redacted removed unset unchanged
forgotten current strong random generated somepassword mypassword yourpassword dbpassword thepassword
newpassword oldpassword supersecret topsecret verysecret notasecret foobar foobarbaz
"""
_NOT_PASSWORDS = frozenset(_COMMON_WORDS.split())
_CAMEL_CASE = re.compile(r"[a-z]+[A-Z]")
_MESSAGE_NAME = re.compile(  # names of user-interface texts about passwords
    r"(?:WRONG|INVALID|INCORRECT|ENTER|FORGOT|RESET|CHANGE|NEW|OLD|CONFIRM|REPEAT|SHOW|HIDE|MISSING|WEAK|NO|SET"
    r"|UPDATE|CURRENT|YOUR|BAD)_"
)


def is_password_word(word: str, name: str = "") -> bool:
    """Return whether a word in such a context is a password, not a variable or a word about passwords."""
    if _MESSAGE_NAME.match(name) or _CAMEL_CASE.match(word):
        return False
    return word.lower() not in _NOT_PASSWORDS and len(set(word.lower())) > 2
