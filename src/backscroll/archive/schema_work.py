"""The eleventh migration: what each tool and each model did in each quarter of an hour."""

__all__ = ["WORK"]

WORK = """
create table work (
    account integer not null references account(number) on delete cascade,
    quarter integer not null,
    tool integer not null,
    model integer not null,
    messages integer not null default 0,
    calls integer not null default 0,
    failures integer not null default 0,
    added integer not null default 0,
    removed integer not null default 0,
    decided integer not null default 0,
    accepted integer not null default 0,
    primary key (account, quarter, tool, model)
) without rowid;
insert into work (account, quarter, tool, model, messages, calls, failures)
    select account, coalesce(at / 900000, -1), iif(role = 4, coalesce(tool, 0), 0), coalesce(model, 0),
    count(*), sum(role = 4), sum(role = 4 and coalesce(status, 0) = 9)
    from message where is_active and role <> 6 and copied_from is null and (role = 4 or model is not null)
    group by 1, 2, 3, 4;
insert into work (account, quarter, tool, model, added, removed, decided, accepted)
    select e.account, coalesce(m.at / 900000, -1), coalesce(m.tool, 0), coalesce(m.model, 0),
    sum(iif(coalesce(m.status, 0) = 7, e.added, 0)), sum(iif(coalesce(m.status, 0) = 7, e.removed, 0)),
    sum(m.decision is not null), sum(coalesce(m.decision, 0) = 11)
    from edit e cross join message m on m.account = e.account and m.position = e.position
    where m.is_active and m.copied_from is null
    group by 1, 2, 3, 4
    on conflict (account, quarter, tool, model) do update set added = excluded.added,
    removed = excluded.removed, decided = excluded.decided, accepted = excluded.accepted;
"""
