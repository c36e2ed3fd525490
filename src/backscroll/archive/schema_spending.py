"""The tenth migration: what responses took in each quarter of an hour, so that costs add up at once."""

__all__ = ["SPENDING"]

SPENDING = """
create table spending (
    account integer not null references account(number) on delete cascade,
    quarter integer not null,
    model integer not null,
    speed integer not null,
    size integer not null,
    responses integer not null,
    input integer not null,
    output integer not null,
    cache_write integer not null,
    cache_write_1h integer not null,
    cache_read integer not null,
    cost real,
    is_at_least integer not null,
    primary key (account, quarter, model, speed, size)
) without rowid;
insert into spending select account, coalesce(at / 900000, -1), coalesce(model, 0), coalesce(speed, 0),
    (p > 32000) + (p > 64000) + (p > 100000) + (p > 128000) + (p > 200000) + (p > 256000) + (p > 272000)
    + (p > 500000) as size,
    count(*), sum(coalesce(input, 0)), sum(coalesce(output, 0)),
    sum(coalesce(cache_creation, 0) - coalesce(cache_creation_1h, 0)), sum(coalesce(cache_creation_1h, 0)),
    sum(coalesce(cache_read, 0)), sum(cost), max(is_at_least)
    from (select *, coalesce(input, 0) + coalesce(cache_creation, 0) + coalesce(cache_read, 0) as p
        from response where is_copy is not 1)
    group by 1, 2, 3, 4, 5;
"""
