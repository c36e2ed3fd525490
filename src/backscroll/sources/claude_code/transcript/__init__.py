"""Parser of transcripts: one JSONL file per session or subagent."""
