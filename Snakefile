# EPNet, reproduced. What is asked for stands in config/, what is computed in epcore/.
#   snakemake --cores 8 tables/main.tex                        the demo, on built-in data; or `all`
#   snakemake --cores 8 ablation_pipeline compared             the ablations; compared methods, trained
#   snakemake --cores 8 tables/main.tex --config scale=paper
#   epcore forecast                                            what is left of `all`, and what it costs
#
# Grammar of results (epcore/plan/paths.py):
#   results/{scale}/data/{dataset}/{images,labels,checksums}.npy, store.json
#   results/{scale}/episodes/{dataset}/{protocol}.npz
#   results/{scale}/{models,features}/{dataset}/{backbone}/{recipe}/s{seed}/{pretrain,finetune-1shot}.*
#   results/{scale}/scores/{dataset}/{backbone}/{recipe}/s{seed}/{protocol}.csv
#   results/{scale}/imagenet-fs/{dataset}/{network}/s{seed}/{classifier.pt,features/,{method}.pt,...}
#   results/{scale}/tables/{table}.csv, .tex, .html            published as tables/{table}.tex
#   results/{scale}/figures/{figure}.pdf, .png, .csv           published as figures/{figure}.pdf, .png
#   results/{scale}/energy/...csv                              what every attempt at a job used
from snakemake.utils import min_version

min_version("9.19")


# The software of all rules, as the Dockerfile installs it. The image is in no registry: to run jobs in
# containers (--software-deployment-method), push it to one and give its name here.
container: "docker://epnet"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/episodes.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/select.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/compared.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/footprint.smk"
include: "workflow/rules/publish.smk"


if PLAN.imagenet_fs:

    include: "workflow/rules/imagenet_fs.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        published_tables(PLAN.main_tables),
        published_figures(PLAN.covered_figures),
        paths.ENVIRONMENT.format(scale=SCALE),
        contact_sheets(PLAN.registry.scale.columns.values()),
        published_reports(),
    localrule: True
