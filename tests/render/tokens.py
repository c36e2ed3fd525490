"""Secrets that are nobody's, put together when they are needed so that none stands in a file."""

import random
import string

__all__ = ["TOKENS", "made", "pem"]

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def made(length: int, alphabet: str = _ALNUM, *, seed: int = 1) -> str:
    """Random characters, the same each time."""
    rng = random.Random(f"{length} {alphabet} {seed}")
    return "".join(rng.choice(alphabet) for _ in range(length))


def pem(label: str = "RSA ") -> str:
    """A private key's block."""
    body = "\n".join(made(64, _ALNUM + "+/", seed=line) for line in range(12))
    return f"-----{'BEGIN'} {label}PRIVATE KEY-----\n{body}\n-----{'END'} {label}PRIVATE KEY-----"


def _jwt() -> str:
    return f"eyJ{made(30)}.eyJ{made(60)}.{made(43)}"


_SLACK = "https://hooks.slack" + ".com/services/T"

# kind: texts around a secret, and the secret
TOKENS: dict[str, list[tuple[str, str]]] = {
    "AWS access key": [("key {}", "AKIA" + made(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))],
    "AWS secret key": [("aws_secret_access_key = {}", made(40, _ALNUM + "/+"))],
    "GitHub token": [("{}", "ghp" + "_" + made(36)), ("x={};", "github" + "_pat_" + made(82))],
    "GitLab token": [("git clone https://oauth2@{}", "glpat" + "-" + made(20))],
    "Slack token": [("{}", "xoxb" + "-" + made(12, string.digits) + "-" + made(24))],
    "webhook address": [("post to {} now", _SLACK + made(8) + "/B" + made(24))],
    "Stripe key": [("{}", "sk" + "_live_" + made(24))],
    "OpenAI key": [("OPENAI_API_KEY={}", "sk" + "-proj-" + made(60)), ("{}", "sk" + "-" + made(48))],
    "Anthropic key": [("export ANTHROPIC_API_KEY={}", "sk" + "-ant-api03-" + made(93))],
    "Google API key": [("?key={}&x=1", "AIza" + made(35))],
    "Google OAuth secret": [("{}", "GOCSPX" + "-" + made(28))],
    "npm token": [("//registry/:_authToken={}", "npm" + "_" + made(36))],
    "package index token": [("{}", "pypi" + "-AgE" + made(80))],
    "SendGrid key": [("{}", "SG" + "." + made(22) + "." + made(43))],
    "Twilio key": [("{}", "SK" + made(32, _HEX))],
    "DigitalOcean token": [("{}", "dop" + "_v1_" + made(64, _HEX))],
    "Hugging Face token": [("{}", "hf" + "_" + made(34))],
    "Notion token": [("{}", "ntn" + "_" + made(46)), ("{}", "secret" + "_" + made(43))],
    "Cursor key": [
        ("CURSOR_API_KEY={}", "key" + "_" + made(64, _HEX)),
        ("{}", "crsr" + "_" + made(64, _HEX)),
    ],
    "Netlify token": [("{}", "nfp" + "_" + made(36))],
    "Fly token": [("FlyV1 {}", "fm2" + "_" + made(80))],
    "Databricks token": [("{}", "dapi" + made(32, _HEX))],
    "Telegram bot token": [("{}", made(9, "123456789") + ":AA" + made(33))],
    "Vault token": [("{}", "hvs" + "." + made(30))],
    "JSON web token": [("cookie: {}; path=/", _jwt())],
    "private key": [("{}", pem()), ("key:\n{}\nend", pem("OPENSSH ")), ("{}", pem("").replace("\n", "\\n"))],
    "connection string": [
        ("DATABASE_URL={}", "postgres://admin:" + made(12) + "@db.internal:5432/prod"),
        ('"{}"', "mongodb+srv://app:" + made(9) + "@cluster0.example.net/x?retryWrites=true"),
        ("git clone {}", "https://zoe:" + made(20) + "@git.example.org/zoe/ferry.git"),
    ],
    "bearer token": [("Authorization: Bearer {}", made(40))],
    "basic credentials": [("Authorization: Basic {}", "em9lOnNlY3JldHNlY3JldA==")],
    "Azure key": [("AccountName=x;AccountKey={};", made(86, _ALNUM + "+/") + "==")],
    "password": [
        ("password: {}", "hunter" + "2"),
        ("the password is {}.", "Tide" + "line7"),
        ('DB_PASSWORD="{}"', "a(b,c);<d>" + "$9"),
        ("{{\\\"password\\\": \\\"{}\\\"}}", "quoted" + "Twice1"),
        ("mysql --password={} -u root", "sea" + "Gull99"),
        ("curl -u zoe:{} https://x", "har" + "bour55"),
        ("export PGPASSWORD={}", "low" + "Water3"),
        ("DB_PASSWORD={} make run", "sword" + "fish"),
        ("  POSTGRES_PASSWORD: {}", "sword" + "fish"),
        ("SMTP_PASS='{}'", "sword" + "fish"),
        ('{{"username": "zoe", "password": "{}"}}', "sword" + "fish"),
        ('connect(user="zoe", password="{}")', "sword" + "fish"),
        ("host=db user=zoe dbname=ferry password={}", "sword" + "fish"),
        ("username: zoe\n  password: {}", "sword" + "fish"),
        ("mysql -u root -p{} ferry", "sword" + "fish"),
        ("mysqldump --password={} ferry", "sword" + "fish"),
        ("sshpass -p {} ssh quay", "sword" + "fish"),
        ("curl -u zoe:{} https://x", "sword" + "fish"),
        ("machine x.example login zoe password {}", "sword" + "fish"),
        ('my wifi password is "{}"', "sword" + "fish"),
    ],
    "key or token": [
        ("api_key = '{}'", made(32)),
        ("X-Api-Key: {}", made(32, _HEX)),
        ("deploy --token {}", made(30)),
        ("CLIENT_SECRET={}", made(40)),
    ],
}  # fmt: skip
