"""Made-up secrets, assembled at run time so that no file contains one."""

import random
import string

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def random_text(length: int, alphabet: str = _ALNUM, *, seed: int = 1) -> str:
    """Return random characters, the same ones each time."""
    rng = random.Random(f"{length} {alphabet} {seed}")
    return "".join(rng.choice(alphabet) for _ in range(length))


def pem(label: str = "RSA ") -> str:
    """Return the PEM block of a private key."""
    body = "\n".join(random_text(64, _ALNUM + "+/", seed=line) for line in range(12))
    return f"-----{'BEGIN'} {label}PRIVATE KEY-----\n{body}\n-----{'END'} {label}PRIVATE KEY-----"


def _jwt() -> str:
    return f"eyJ{random_text(30)}.eyJ{random_text(60)}.{random_text(43)}"


_SLACK = "https://hooks.slack" + ".com/services/T"

# kind: texts around a secret, and the secret
TOKENS: dict[str, list[tuple[str, str]]] = {
    "AWS access key": [("key {}", "AKIA" + random_text(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))],
    "AWS secret key": [("aws_secret_access_key = {}", random_text(40, _ALNUM + "/+"))],
    "GitHub token": [("{}", "ghp" + "_" + random_text(36)), ("x={};", "github" + "_pat_" + random_text(82))],
    "GitLab token": [("git clone https://oauth2@{}", "glpat" + "-" + random_text(20))],
    "Slack token": [("{}", "xoxb" + "-" + random_text(12, string.digits) + "-" + random_text(24))],
    "webhook address": [("post to {} now", _SLACK + random_text(8) + "/B" + random_text(24))],
    "Stripe key": [("{}", "sk" + "_live_" + random_text(24))],
    "OpenAI key": [
        ("OPENAI_API_KEY={}", "sk" + "-proj-" + random_text(60)),
        ("{}", "sk" + "-" + random_text(48)),
    ],
    "Anthropic key": [("export ANTHROPIC_API_KEY={}", "sk" + "-ant-api03-" + random_text(93))],
    "Google API key": [("?key={}&x=1", "AIza" + random_text(35))],
    "Google OAuth secret": [("{}", "GOCSPX" + "-" + random_text(28))],
    "npm token": [("//registry/:_authToken={}", "npm" + "_" + random_text(36))],
    "package index token": [("{}", "pypi" + "-AgE" + random_text(80))],
    "SendGrid key": [("{}", "SG" + "." + random_text(22) + "." + random_text(43))],
    "Twilio key": [("{}", "SK" + random_text(32, _HEX))],
    "DigitalOcean token": [("{}", "dop" + "_v1_" + random_text(64, _HEX))],
    "Hugging Face token": [("{}", "hf" + "_" + random_text(34))],
    "Notion token": [("{}", "ntn" + "_" + random_text(46)), ("{}", "secret" + "_" + random_text(43))],
    "Cursor key": [
        ("CURSOR_API_KEY={}", "key" + "_" + random_text(64, _HEX)),
        ("{}", "crsr" + "_" + random_text(64, _HEX)),
    ],
    "Netlify token": [("{}", "nfp" + "_" + random_text(36))],
    "Fly token": [("FlyV1 {}", "fm2" + "_" + random_text(80))],
    "Databricks token": [("{}", "dapi" + random_text(32, _HEX))],
    "Telegram bot token": [("{}", random_text(9, "123456789") + ":AA" + random_text(33))],
    "Vault token": [("{}", "hvs" + "." + random_text(30))],
    "JSON web token": [("cookie: {}; path=/", _jwt())],
    "private key": [("{}", pem()), ("key:\n{}\nend", pem("OPENSSH ")), ("{}", pem("").replace("\n", "\\n"))],
    "connection string": [
        ("DATABASE_URL={}", "postgres://admin:" + random_text(12) + "@db.internal:5432/prod"),
        ('"{}"', "mongodb+srv://app:" + random_text(9) + "@cluster0.example.net/x?retryWrites=true"),
        ("git clone {}", "https://zoe:" + random_text(20) + "@git.example.org/zoe/ferry.git"),
    ],
    "bearer token": [("Authorization: Bearer {}", random_text(40))],
    "basic credentials": [("Authorization: Basic {}", "em9lOnNlY3JldHNlY3JldA==")],
    "Azure key": [("AccountName=x;AccountKey={};", random_text(86, _ALNUM + "+/") + "==")],
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
        ("api_key = '{}'", random_text(32)),
        ("X-Api-Key: {}", random_text(32, _HEX)),
        ("deploy --token {}", random_text(30)),
        ("CLIENT_SECRET={}", random_text(40)),
    ],
}  # fmt: skip
