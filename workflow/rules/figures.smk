# Figures, each with the numbers that it draws: a rule for each stage that writes one.
from epcore.plan.figure_models import FigureSettings
from epcore.stages import STAGES, Figure


def of_networks(stage, runs):
    """An `input` function: features of the runs, and the episodes, which are of one protocol."""
    return lambda w: [
        *map(PLAN.runs.features, runs()),
        *files_for(stage, "episodes")(w),
    ]


# Stage -> what its figure is drawn from; the others compute on points of their own.
DRAWN_FROM = {
    "ablation": lambda w: [
        *(cell.scores for cell in PLAN.tables.cells("ablation")),
        *files_for("ablation", "paper")(w),
    ],
    "alpha": of_networks("alpha", PLAN.figures.alpha_runs),
    "interpolation": of_networks("interpolation", PLAN.figures.interpolation_runs),
    "plot": files_for("plot", "tables"),
    "curves": lambda w: PLAN.curves.files(w.curves),
    "gap": lambda w: [
        paths.curve(checkpoint)
        for pair in PLAN.curves.gap().pairs
        for checkpoint in (pair.checkpoint, pair.baseline)
    ],
    "speed": lambda w: [
        file
        for point in PLAN.figures.speed().points
        for file in (point.scores, paths.meta(point.scores))
    ],
    "per-episode": lambda w: [cell.scores for cell in PLAN.figures.per_episode().cells],
}


def title_of(stage, wildcards):
    """What the report calls a figure."""
    if stage == "ablation":
        return "what each factor of the ablation is worth"
    if stage == "plot":
        return f"accuracy over {PLAN.plots.settings.plots[wildcards.plot].label}"
    if stage == "curves":
        return PLAN.curves.stages[wildcards.curves].note
    return FigureSettings.model_fields[stage.replace("-", "_")].description


def figure_rule(stage):
    """The rule of a stage that draws the figure of its name, or figures named by a wildcard.

    A function, so that `shell` keeps its stage: Snakemake reads it once more when a job starts,
    and a loop has then come to its end.
    """
    declared = STAGES[stage]
    made = declared.out.pattern.removesuffix(".pdf")
    name = Path(made).name
    pdf, png, *drawn, numbers = (made + ending for ending in declared.out.endings)

    rule:
        name:
            stage.replace("-", "_")
        input:
            DRAWN_FROM.get(stage, []),
        output:
            figure=pdf,
            picture=report(
                png,
                caption=f"../report/{stage}.rst",
                category=(
                    "Training curves" if stage in ("curves", "gap") else "Figures"
                ),
                labels=lambda w: {
                    "figure": title_of(stage, w),
                    "file": name.format(**w),
                },
            ),
            drawn=drawn,
            numbers=numbers,
            meta=paths.meta(pdf),
        log:
            f"results/{{scale}}/logs/figures/{name}.log",
        localrule: True
        conda:
            "../../environment.yml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=30,
        params:
            job=job_of(stage),
        shell:
            f"epcore {stage} {{params.job:q}} > {{log:q}} 2>&1"


for stage, declared in STAGES.items():
    if isinstance(declared.out, Figure):
        figure_rule(stage)
