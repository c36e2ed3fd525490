"""Words that people who write software use for the same thing.

Whoever asks rarely uses the words of whoever answered. A line holds words that may stand for
one another somewhere, in their plain forms; a word may be in several lines. What a
word stands for counts for less than the word itself, so a line may be generous.
"""

from collections import defaultdict
from functools import cache

from backscroll.index.text.inflections import inflections

__all__ = ["is_everyday", "synonyms"]

_LINES = """
slow sluggish lag latency delay
fast quick quickly rapid speed immediate immediately instant instantly
speed performance throughput faster
optimize optimise improve accelerate speedup faster
cache cached memoize buffer
memory ram heap oom
cpu processor core
benchmark measure measurement timing profile numbers
time duration seconds minutes hours took takes
timeout deadline expire expiry ttl
hang freeze stuck block deadlock
wait delay pause sleep
error failure fault exception
fail break crash die abort
crash panic segfault abort killed
bug defect issue problem mistake
broken dead invalid
wrong incorrect false bad off
fix repair correct solve resolve mend
warn warning complain notice
debug diagnose investigate
reason cause why because blame
retry again repeat rerun
restore recover return back
rollback revert undo discard throw
corrupt damage destroy
missing absent lost gone lack hole gap
duplicate twice double repeated
stale outdated obsolete expired
leftover remains rest remaining left
add insert append include
create make new produce generate write
remove delete drop erase purge
move relocate transfer
replace substitute swap instead
copy clone duplicate
update modify change edit alter adjust
rewrite refactor restructure
merge join combine
split divide separate
convert transform translate
parse read decode interpret
encode serialize escape
compress zip pack
sort order arrange rank sequence
find search look locate
choose pick select decide decision agreed
compare comparison diff difference against
count number amount total quantity
limit cap maximum quota bound
allow permit enable may
deny forbid refuse reject block
disable off deactivate
start begin launch boot
stop end halt quit terminate
finish complete done ready
unfinished open pending todo incomplete remaining
install setup installation
deploy release publish ship
distribute deliver ship publish
build compile make
run execute launch
test spec check verify
validate verify check
show display render present print
hide conceal
open access
keep retain preserve store
share common together
follow track trace
use apply employ
need require want must
support handle
ask request query poll hit
answer response reply respond
tell say inform report
explain describe document
notice detect discover alert monitor
lose lost loss
connect connection link
send post submit
receive get fetch obtain download
save store write persist
load import read ingest
export dump output write
sync synchronize replicate
database db storage store
table relation
row record entry line tuple
column field attribute
key id identifier
query select statement
schema model structure
transaction atomic commit
backup snapshot archive
postgres postgresql psql
file document
folder directory
path location
text string
character letter byte symbol
encoding charset utf8 utf latin unicode
csv spreadsheet
config configuration settings preferences option
environment env
log trace journal
queue job task worker
batch bulk chunk
stream pipe
content body
metadata header
version release
history past earlier former old previous historical
server host machine box backend
client consumer caller
service daemon server
api endpoint interface
http web
url link address href
redirect moved 301 302 308
anchor fragment section heading
token credential key
login logon auth authentication signin
logout signout
refresh reload
permission rights access
throttle rate limit quota
network connection internet
poll polling poller fetch
feed rss atom syndication
mail email
supplier provider vendor operator
page site website homepage web
screen display viewport
phone mobile smartphone
picture image photo illustration
gallery grid
color colour
dark night
light bright day
theme style colours
font typeface
style css stylesheet
wide width overflow
accessibility accessible a11y screenreader
contrast legible readable
header heading title caption
comment remark feedback
post article note entry blog
reader visitor user people
user customer person people
team people colleague
time clock hour
day date
night midnight
daylight dst clock summer saving
timezone zone utc offset local
autumn fall october november
winter december january february
spring march april
summer june july august
year annual yearly
month monthly
week weekly
day daily nightly
schedule timetable calendar plan
newest latest recent last
oldest first earliest
current now today
commit checkin
branch worktree
repo repository project
tag version release
changelog notes history
diff patch change
conflict collision
review audit inspect
handover handoff takeover
javascript js node
typescript ts
binary executable program
library package dependency module
framework generator
function method routine
compiler rustc tsc gcc
thread parallel concurrent worker
async asynchronous nonblocking asyncio concurrent
lock mutex semaphore
script program tool
command cli terminal shell console
option flag argument parameter switch
exit code status return
ci pipeline workflow actions
container docker compose
windows linux macos platform os
documentation docs readme manual guide
example sample
plan design proposal propose
idea suggestion suggest
question ask
rule convention policy
secret password key
encrypt cipher tls
safe secure security
big large huge
small tiny little
many several multiple
whole entire all complete
part piece chunk fragment
same equal identical
different other another
similar like alike
empty blank nothing
full filled exhausted
old former previous legacy
cost price expense
place location site
ambiguous unclear
cancel cancelled abort
unavailable down outage 502 503
forbidden denied 401 403
missing notfound 404 410
limit throttle 429
space blank whitespace
percent escape encoded
"""

# Words of every day: they tell little of what a task is about, wherever they come up.
_EVERYDAY_WORDS = """
after again against all already also another anything back become been before between both came come day
done down during each every everything few first gave get give given go goes gone good got happen happened
kept keep know last let like long look made make many may might more most much must need new no off old
once one only other out over own please put really said same say see shall some something still take taken
tell thing think through time told took two under up use used using want way went work works
"""
_EVERYDAY = frozenset(_EVERYDAY_WORDS.split())


@cache
def _known() -> dict[str, tuple[str, ...]]:
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for line in _LINES.strip().splitlines():
        words = line.split()
        for word in words:
            found[word].update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}


def is_everyday(word: str) -> bool:
    """Whether a word, in small letters, tells little about a task."""
    return word in _EVERYDAY


def synonyms(word: str) -> tuple[str, ...]:
    """Other words that may stand for a word in small letters, in all their forms; not the word itself."""
    own = inflections(word)
    known = _known()
    others = dict.fromkeys(other for form in own for other in known.get(form, ()))
    return tuple(dict.fromkeys(form for other in others for form in inflections(other) if form not in own))
