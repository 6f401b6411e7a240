"""Attentions for the arena: wrong ones to catch, right ones to leave alone.

`shown` holds the bugs that the lesson shows, `hidden` those it holds back, `right` the
right ones in as many styles. All take (q, k, v, mask=None) and give out.
"""
