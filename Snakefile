# EPNet, reproduced. What is asked for stands in config/, what is computed in epcore/.
#
#   snakemake --cores 8 tables/main.tex                        the demo, on embedded data
#   snakemake --cores 8 all                                    every table and figure
#   snakemake --cores 8 ablation_pipeline                      the ablations
#   snakemake --cores 8 tables/main.tex --config scale=paper
#   snakemake --cores 8 data_pictures                          contact sheets of the data sets
#
# Grammar of results (epcore/plan/paths.py):
#   results/{scale}/data/{dataset}/{images,labels}.npy, store.json
#   results/{scale}/episodes/{dataset}/{protocol}.npz
#   results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/{pretrain,finetune-1shot}.pt
#   results/{scale}/features/{dataset}/{backbone}/{recipe}/s{seed}/{pretrain,finetune-1shot}.npz
#   results/{scale}/scores/{dataset}/{backbone}/{recipe}/s{seed}/{protocol}.csv
#   results/{scale}/imagenet-fs/{dataset}/exemplars/{val,novel}-{shots}shot.npz
#   results/{scale}/imagenet-fs/{dataset}/{network}/s{seed}/{classifier.pt,features/,{method}.pt,scores/}
#   results/{scale}/tables/{table}.csv, .tex                   published as tables/{table}.tex
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


if PLAN.imagenet_fs:

    include: "workflow/rules/imagenet_fs.smk"


rule all:
    default_target: True
    input:
        published_tables(PLAN.covered_tables),
        published_tables(IMAGENET_FS_TABLES),
        published_figures(PLAN.covered_figures),
    localrule: True


rule ablation_pipeline:
    input:
        published_tables(ABLATIONS),
        published_figures(PLAN.covered_figures),
    localrule: True
