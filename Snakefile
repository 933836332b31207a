# EPNet, reproduced. What is asked for stands in config/, what is computed in epcore/.
#
#   snakemake --cores 8 tables/main.tex                        the demo, on embedded data
#   snakemake --cores 8 all                                    every table and figure
#   snakemake --cores 8 ablation_pipeline                      the ablations
#   snakemake --cores 8 tables/main.tex --config scale=paper
#   snakemake --cores 1 forecast                               what all that is left will cost
#   snakemake --cores 8 data_pictures                          contact sheets of the data sets
#   make report                                                all of it, then report.html
#
# Grammar of results (epcore/plan/paths.py):
#   results/{scale}/data/{dataset}/{images,labels,checksums}.npy, store.json
#   results/{scale}/episodes/{dataset}/{protocol}.npz
#   results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/{pretrain,finetune-1shot}.pt
#   results/{scale}/features/{dataset}/{backbone}/{recipe}/s{seed}/{pretrain,finetune-1shot}.npz
#   results/{scale}/scores/{dataset}/{backbone}/{recipe}/s{seed}/{protocol}.csv
#   results/{scale}/imagenet-fs/{dataset}/exemplars/{val,novel}-{shots}shot.npz
#   results/{scale}/imagenet-fs/{dataset}/{network}/s{seed}/{classifier.pt,features/,{method}.pt,scores/}
#   results/{scale}/tables/{table}.csv, .tex, .html            published as tables/{table}.tex
#   results/{scale}/figures/{figure}.pdf, .png, .csv           published as figures/{figure}.*
#   results/{scale}/ledger.jsonl                               what every attempt at a job used
from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/episodes.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/plots.smk"
include: "workflow/rules/footprint.smk"


report: "workflow/report/workflow.rst"


if PLAN.imagenet_fs:

    include: "workflow/rules/imagenet_fs.smk"


rule all:
    default_target: True
    input:
        published_tables(PLAN.covered_tables),
        published_tables(PLAN.imagenet_fs_tables),
        published_figures(PLAN.covered_figures),
        paths.ENVIRONMENT.format(scale=SCALE),
        contact_sheets(PLAN.scale.columns.values()),
        published_reports(),
    localrule: True


rule ablation_pipeline:
    input:
        published_tables(PLAN.ablation_tables),
        published_figures(PLAN.ablation_figures),
    localrule: True
