# Reports: where jobs ran, their energy and CO2, the reproduction.


rule environment:
    input:
        PLAN.job_metas,
    output:
        report(
            paths.ENVIRONMENT,
            caption="../report/environment.rst",
            category="Environment",
            labels={"page": "packages, devices and revisions of the code"},
        ),
    log:
        "results/{scale}/logs/environment.log",
    localrule: True
    resources:
        mem_mb=500,
        runtime=5,
    params:
        stage="environment",
        config=slice_of(PLAN.environment),
    script:
        "../scripts/report.py"


# Last of all, so that everything else is counted. What is counted grows with every job and therefore
# is no input. By hand it may be run at any time.
rule co2:
    input:
        expand(
            paths.TABLE_TEX,
            scale=SCALE,
            table=PLAN.main_tables,
        ),
        expand(paths.FIGURE, scale=SCALE, figure=PLAN.covered_figures),
        paths.CLAIMS.format(scale=SCALE),
        paths.ENVIRONMENT.format(scale=SCALE),
        contact_sheets(PLAN.registry.scale.columns.values()),
    output:
        report=report(
            paths.CO2,
            caption="../report/co2.rst",
            category="Footprint",
            labels={"what": "every job, rule, table and figure"},
        ),
        text="results/{scale}/reports/co2.md",
        meta=paths.meta(paths.CO2),
        table="results/{scale}/tables/co2.tex",
        figure="results/{scale}/figures/co2.pdf",
        picture=report(
            "results/{scale}/figures/co2.png",
            caption="../report/co2.rst",
            category="Footprint",
            labels={"what": "bars by rule and by table"},
        ),
    log:
        "results/{scale}/logs/co2.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=slice_of(PLAN.co2),
        energy=ENERGY,
    shell:
        "epcore co2 --config {params.config:q} --energy {params.energy:q} --out {output.report:q} "
        "--tex {output.table:q} --drawing {output.figure:q} > {log:q} 2>&1"


# Where a GPU is required, a run takes days. The forecast starts a dry run, which reads this file
# again; so this file names the command and does not run it.
if PLAN.registry.scale.requires_gpu and workflow.is_main_process:
    print(
        f"To see what this costs: epcore forecast TARGET --config scale={SCALE}",
        file=sys.stderr,
    )


# After the footprint, which it tells of; not in `all`, because it takes LaTeX.
rule reproduction:
    input:
        claims=paths.CLAIMS,
        tables=expand(paths.TABLE_CSV, table=PLAN.main_tables, allow_missing=True),
        typeset=expand(
            paths.TABLE_TEX,
            table=[t for t in PLAN.reproduction().tables if t != "co2"],
            allow_missing=True,
        ),
        figures=expand(paths.FIGURE, figure=PLAN.covered_figures, allow_missing=True),
        footprint=[paths.CO2] * PLAN.registry.footprint.tracking,
        footprint_table=["results/{scale}/tables/co2.tex"]
        * PLAN.registry.footprint.tracking,
        template=str(CONFIG.parent / "workflow/report/reproduction.tex"),
    output:
        paths.REPRODUCTION,
    log:
        "results/{scale}/logs/reproduction.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        stage="reproduction",
        config=slice_of(PLAN.reproduction),
    script:
        "../scripts/report.py"
