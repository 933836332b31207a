"""The grammar of the results folder; the rules of the workflow use these patterns.

Every segment is a readable name of a registry, or s<seed>.
"""

from pathlib import Path

from epcore.files import curve_of, meta_of

RECEIPT = "results/{scale}/sources/{source}.json"
DATA = "results/{scale}/data/{dataset}"
STORE = DATA + "/store.json"
IMAGES = DATA + "/images.npy"
LABELS = DATA + "/labels.npy"
CHECKSUMS = DATA + "/checksums.npy"
CONTACT_SHEET = "results/{scale}/figures/data/{dataset}.png"
EPISODES = "results/{scale}/episodes/{dataset}/{protocol}.npz"
PRETRAIN = "results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/pretrain.pt"
FINETUNE = "results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/finetune-{shot}shot.pt"
META_TRAINED = "results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/meta-{shot}shot.pt"
CHECKPOINT = "results/{scale}/models/{dataset}/{backbone}/{recipe}/s{seed}/{checkpoint}.pt"
FEATURES = "results/{scale}/features/{dataset}/{backbone}/{recipe}/s{seed}/{checkpoint}.npz"
BASE_CLASSES = FEATURES.replace(".npz", "-base.npz")
SCORES = "results/{scale}/scores/{dataset}/{backbone}/{recipe}/s{seed}/{protocol}.csv"
CLASSIFIED = SCORES.replace(".csv", "-classifiers.csv")  # `recipe` is the one before the +
FIGURE = "results/{scale}/figures/{figure}.pdf"
TABLE_CSV = "results/{scale}/tables/{table}.csv"
TABLE_TESTS = "results/{scale}/tables/{table}-by-seed.csv"
TABLE_TEX = "results/{scale}/tables/{table}.tex"
TABLE_HTML = "results/{scale}/tables/{table}.html"
CLAIMS = TABLE_CSV.replace("{table}", "claims")
ENVIRONMENT = "results/{scale}/reports/environment.html"
ENERGY = "results/{scale}/energy"
REPRODUCTION = "results/{scale}/reports/reproduction.pdf"
CO2 = "results/{scale}/reports/co2.csv"

# ImageNet-FS.
EXEMPLAR_FOLDER = "results/{scale}/imagenet-fs/{dataset}/exemplars"
EXEMPLARS = EXEMPLAR_FOLDER + "/{split}-{shots}shot.npz"
_RUN = "results/{scale}/imagenet-fs/{dataset}/{network}/s{seed}"
CLASSIFIER = _RUN + "/classifier.pt"
FEATURE_FOLDER = _RUN + "/features"
IMAGE_FEATURES, QUERY_FEATURES = FEATURE_FOLDER + "/images.npy", FEATURE_FOLDER + "/queries.npy"
GENERATOR = _RUN + "/{method}.pt"
TRIAL_FOLDER = _RUN + "/scores/{method}"
TRIALS = TRIAL_FOLDER + "/{protocol}.csv"


def meta(path: str) -> str:
    """The pattern of the `meta.json` that stands beside an artifact."""
    return str(meta_of(Path(path)))


def curve(checkpoint: str) -> str:
    """The pattern of the training curve that stands beside a checkpoint."""
    return str(curve_of(Path(checkpoint)))
