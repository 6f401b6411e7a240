"""Mistakes that only an examination from outside looks for: modules."""

from attnlib.clinic.catalogue import Mistake

_ROLES = "The query asks, the key answers, the value is what is said."

MISTAKES = (
    Mistake(
        "values_from_keys",
        "M46",
        "The values are made from what the keys are made from",
        "It takes values of their own, and does not use them: W_v reads the key input.",
        "What does W_v multiply, where key and value are handed in apart?",
    ),
    Mistake(
        "keys_from_values",
        "M46",
        "The keys are made from what the values are made from",
        "It takes keys of their own, and does not use them: W_k reads the value input.",
        "What does W_k multiply, where key and value are handed in apart?",
    ),
    *(
        Mistake(key, code, name, sentence, mend)
        for key, code, name, sentence, mend in (
            (
                "heads_interleaved",
                "M22",
                "Heads own every n_heads-th feature, not neighbouring ones",
                "The module is right for weights in that order. Weights of another "
                "model, whose heads own neighbouring columns, end up in wrong heads.",
                "Reshape to (batch, n, n_heads, d) and exchange two axes.",
            ),
            (
                "split_of_v_alone",
                "M20",
                "The values are split without a transpose",
                "A view reinterprets memory, it does not move it: tokens and heads are "
                "mixed up.",
                "Reshape to (batch, n, n_heads, d) and exchange two axes.",
            ),
            (
                "split_of_q_and_k_alone",
                "M20",
                "Queries and keys are split without a transpose",
                "A view reinterprets memory, it does not move it: tokens and heads are "
                "mixed up.",
                "Reshape to (batch, n, n_heads, d) and exchange two axes.",
            ),
            (
                "split_of_q_alone",
                "M20",
                "The queries are split without a transpose",
                "A view reinterprets memory, it does not move it: tokens and heads are "
                "mixed up.",
                "Reshape to (batch, n, n_heads, d) and exchange two axes.",
            ),
            (
                "split_of_k_alone",
                "M20",
                "The keys are split without a transpose",
                "A view reinterprets memory, it does not move it: tokens and heads are "
                "mixed up.",
                "Reshape to (batch, n, n_heads, d) and exchange two axes.",
            ),
            (
                "split_of_fused",
                "M20",
                "Queries, keys and values are cut from one table without a transpose",
                "Reshaped to (3, batch, n_heads, n, d) at once, queries of one item "
                "are made of keys and values of another.",
                "Reshape to (batch, n, 3, n_heads, d) first, then move the axes.",
            ),
            (
                "tables_q_v_swapped",
                "M46",
                "W_q and W_v are exchanged",
                _ROLES,
                "Which table makes the queries?",
            ),
            (
                "values_by_key_table",
                "M46",
                "The values are made by W_k",
                _ROLES + " W_v is not used.",
                "Which table makes the values?",
            ),
            (
                "keys_by_query_table",
                "M46",
                "The keys are made by W_q",
                _ROLES + " W_k is not used.",
                "Which table makes the keys?",
            ),
            (
                "values_by_key_table_own_bias",
                "M46",
                "The values are made by W_k",
                _ROLES + " W_v is not used.",
                "Which table makes the values?",
            ),
            (
                "keys_by_query_table_own_bias",
                "M46",
                "The keys are made by W_q",
                _ROLES + " W_k is not used.",
                "Which table makes the keys?",
            ),
            (
                "biases_missing",
                "M47",
                "The biases are not added",
                "The module has them, and does not use them.",
                "x W + b, four times.",
            ),
            (
                "bias_q_missing",
                "M47",
                "The bias of the queries is not added",
                "The module has it, and does not use it.",
                "x W + b, four times.",
            ),
            (
                "bias_v_missing",
                "M47",
                "The bias of the values is not added",
                "The module has it, and does not use it.",
                "x W + b, four times.",
            ),
            (
                "bias_o_missing",
                "M47",
                "The bias of the output is not added",
                "The module has it, and does not use it.",
                "x W + b, four times.",
            ),
            (
                "bias_q_and_v_missing",
                "M47",
                "The biases of queries and values are not added",
                "The module has them, and does not use them. That of the keys would "
                "move all scores of a row alike.",
                "x W + b, four times.",
            ),
            (
                "W_q_transposed",
                "M47",
                "W_q is transposed",
                "A square table fits both ways; nn.Linear holds it transposed.",
                "x @ W.T for the weight of a Linear, x @ W for a table of one's own.",
            ),
            (
                "W_k_transposed",
                "M47",
                "W_k is transposed",
                "A square table fits both ways; nn.Linear holds it transposed.",
                "x @ W.T for the weight of a Linear, x @ W for a table of one's own.",
            ),
            (
                "W_v_transposed",
                "M47",
                "W_v is transposed",
                "A square table fits both ways; nn.Linear holds it transposed.",
                "x @ W.T for the weight of a Linear, x @ W for a table of one's own.",
            ),
            (
                "batch_as_sequence",
                "M23",
                "It attends over the items of the batch, not over the tokens",
                "The first axis is taken for the tokens: nn.MultiheadAttention does so "
                "unless batch_first=True.",
                "Say batch_first=True, or exchange the first two axes.",
            ),
            (
                "W_o_none",
                "M47",
                "There is no output projection",
                "The heads stand side by side; nothing mixes what they found.",
                "Add W_o, which takes n_heads * d_v numbers to d_model.",
            ),
            (
                "train_differs",
                "M43",
                "It gives other numbers in training than in evaluation",
                "Dropout was off in both, so the two ways of computing differ.",
                "Compare both ways, and "
                "torch.backends.mha.set_fastpath_enabled(False).",
            ),
        )
    ),
)
