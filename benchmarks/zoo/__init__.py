"""The clinic's zoo: right and wrong attentions, written as people write them."""
