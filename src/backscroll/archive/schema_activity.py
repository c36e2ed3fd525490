"""The ninth migration: what was done in each quarter of an hour, so that years add up at once."""

__all__ = ["ACTIVITY"]

ACTIVITY = """
create table activity (
    account integer not null references account(number) on delete cascade,
    quarter integer not null,
    messages integer not null default 0,
    agent_messages integer not null default 0,
    prompts integer not null default 0,
    calls integer not null default 0,
    failures integer not null default 0,
    active integer not null default 0,
    added integer not null default 0,
    removed integer not null default 0,
    decided integer not null default 0,
    accepted integer not null default 0,
    primary key (account, quarter)
) without rowid;
insert into activity (account, quarter, messages, agent_messages, prompts, calls, failures, active)
    select account, coalesce(at / 900000, -1),
    sum(is_active and role <> 6 and agent_id is null),
    sum(is_active and role <> 6 and agent_id is not null),
    sum(is_active and role = 1 and agent_id is null and coalesce(kind, 14) = 14),
    sum(is_active and role = 4), sum(is_active and role = 4 and coalesce(status, 0) = 9),
    coalesce(sum(iif(at > before and at - before < 300000, at - before, 0)), 0)
    from (select *, max(at) over (partition by account order by position
        rows between unbounded preceding and 1 preceding) as before
        from message where copied_from is null)
    group by 1, 2;
insert into activity (account, quarter, added, removed, decided, accepted)
    select e.account, coalesce(m.at / 900000, -1),
    sum(iif(coalesce(m.status, 0) = 7, e.added, 0)), sum(iif(coalesce(m.status, 0) = 7, e.removed, 0)),
    sum(m.decision is not null), sum(coalesce(m.decision, 0) = 11)
    from edit e cross join message m on m.account = e.account and m.position = e.position
    where m.is_active and m.copied_from is null
    group by 1, 2
    on conflict (account, quarter) do update set added = excluded.added, removed = excluded.removed,
    decided = excluded.decided, accepted = excluded.accepted;
"""
