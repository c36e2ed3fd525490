-- Totals that a tool reports for a session, one row per state and model. They are cumulative: the last state
-- is valid. The totals of a fork continue those of the original session and have the same start time.
create table reported_usage (
    fragment_id integer not null references fragment(id) on delete cascade,
    number integer not null,  -- order of the states of a fragment
    started_at integer,  -- when the tool began to count
    at integer,
    model_string_id integer,  -- null: not attributed to a model
    tokens integer not null,
    cost_usd real not null
);
create index reported_usage_fragment on reported_usage(fragment_id);
create index reported_usage_started on reported_usage(started_at);
