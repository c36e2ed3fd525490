-- Prices of the models in token_rollup, resolved from the price table: a list of sessions computes costs from them.
-- Derived: rows of another price table are ignored, and replaced at the next read.
create table price (
    version text not null,  -- of the price table and the user's own file
    model_string_id integer not null references string(id) on delete cascade,
    speed_string_id integer references string(id) on delete cascade,  -- null: standard
    prompt_size_class integer not null,
    first_bucket integer not null,  -- from which the price is valid; -1: from the beginning
    input_usd real,  -- per token; null in all columns if the model has no price
    output_usd real,
    cache_write_usd real,
    cache_write_1h_usd real,
    cache_read_usd real
);
create index price_model on price(model_string_id, prompt_size_class, first_bucket);
create index price_speed on price(speed_string_id);
