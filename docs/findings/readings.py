"""Tables of what four readings of the paper's text do to a training."""

from cells import Line, lines_of, markdown, short

PROTOCOLS = {
    ("deviation", "log-scores"): "`official`, `paper`",
    ("variance", "scores"): "`paper-literal`",
}


def readings() -> str:
    """What four readings of the text say of one network while it trains."""
    epochs = ("1", "2", "5", "10")
    judged: dict[tuple[str, str], dict[str, Line]] = {}
    for line in lines_of("readings/judged"):
        judged.setdefault((line["kernel_width"], line["query_logits"]), {})[line["epoch"]] = line
    rows = []
    for (width, logits), lines in judged.items():
        known = PROTOCOLS.get((width, logits))
        losses = ", ".join(f"{float(lines[epoch]['loss']):.4f}" for epoch in epochs)
        accuracies = ", ".join(f"{float(lines[epoch]['accuracy']):.0f}" for epoch in epochs)
        gradients = sorted(float(line["gradient"]) for line in lines.values())
        span = f"{gradients[0]:.2g} to {gradients[-1]:.2g}"
        rows.append([width, f"{logits} ({known})" if known else logits, losses, accuracies, span])
    head = [
        "kernel width",
        "query logits",
        f"validation loss after epoch {', '.join(epochs)}",
        "accuracy after these, %",
        "gradient of L_p, times the norm of the features",
    ]
    return markdown(head, rows)


def readings_trained() -> str:
    """How trainings by three protocols went, and when their rate fell."""
    rows = []
    for line in lines_of("readings/trained"):
        changed = line["recipe"] == "epnet-paper" and line["bandwidth"] == "var"
        named = f"`{line['recipe']}`" + (" with the variance" if changed else "")
        rows.append([named, line["rate_fell"], short(line["accuracy"])])
    head = ["recipe", "rate first fell after epoch", "best validation accuracy, %"]
    return markdown(head, rows)


TABLES = [readings, readings_trained]
