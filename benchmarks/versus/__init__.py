"""chatserve beside its peers on the same cores: the table of `make bench`.

`rows` says what is compared with what and how much is wanted, `contenders` measures one side of it,
`rounds` lets the sides take turns, `table` turns samples into ratios and Markdown. The peers are
those of `benchmarks.peers`; those that are not installed are named in the table.
"""
