"""Large Claude Code histories for benchmarks, with the sizes and proportions of real ones.

history            write a complete history
session            generate the lines of one session
tool_results       generate tool calls with their results
working_files      files, commands and todos of one session
text_pool          pools of text that is already escaped for JSON
source_code        random source code
command_output     random command output
vocabulary         random words and identifiers
languages          random sentences in other languages
size_distribution  distributions of sizes
"""
