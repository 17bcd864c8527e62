"""The renderers: values in, words out. The only place that imports rich or writes JSON for people's tools."""
