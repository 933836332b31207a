"""What a job of ImageNet-FS computes; see `epcore.imagenet_fs`."""

from epcore.footprint.amount import RESUME, TRAINING, Work, solving
from epcore.footprint.sizes import Size
from epcore.plan.imagenet_fs import ImageNetFsPlan, queries_of
from epcore.plan.imagenet_fs_models import LwofAttention, Method, WdaeGnn
from epcore.plan.jobs import Job
from epcore.plan.network import effort, feature_size

# Classes of the benchmark, and how many of the base classes are scored in the test.
BASE, SCORED_BASE, NOVEL = 389, 196, {"val": 300, "novel": 311}


def work_of(plan: ImageNetFsPlan, job: Job, sizes: dict[str, Size]) -> Work:
    """Of one job; nothing for those that only copy numbers."""
    if job.rule == "imagenet_fs_classifier":
        return _classifier(plan, job, sizes[job.dataset])
    if job.rule == "imagenet_fs_features":
        both = (job.dataset, queries_of(job.dataset))
        return sum((_image_features(plan, job, sizes[name]) for name in both), Work())
    if job.rule == "imagenet_fs_generator":
        return _generator(plan, job, sizes[queries_of(job.dataset)])
    if job.rule == "imagenet_fs_evaluate":
        return _trials(plan, job, sizes[queries_of(job.dataset)])
    return Work()


def _classifier(plan: ImageNetFsPlan, job: Job, size: Size) -> Work:
    """Stage 1 without its validation."""
    settings, network = plan.settings.classifier, plan.backbone(job.backbone)
    one = effort(network, _pixels(plan, size))
    images = float(settings.epochs * TRAINING * settings.steps * settings.batch_size)
    done = Work(images * one.multiply_adds, images * one.values)
    return done + Work(disk=4 * one.weights, resume=RESUME * one.weights)


def _image_features(plan: ImageNetFsPlan, job: Job, size: Size) -> Work:
    network = plan.backbone(job.backbone)
    one, disk = effort(network, _pixels(plan, size)), 4 * size.total * feature_size(network)
    return Work(size.total * one.multiply_adds, size.total * one.values, disk=disk)


def _pixels(plan: ImageNetFsPlan, size: Size) -> int:
    return max(1, round(size.pixels * plan.settings.view.crop))


def _generator(plan: ImageNetFsPlan, job: Job, queries: Size) -> Work:
    """The training of a generator, for each K that has its own, with its validations."""
    settings, method = plan.settings, plan.methods[job.recipe]
    training, features = method.training, _features(plan, job)
    asked = training.novel * training.novel_queries + training.base_queries
    episodes = training.epochs * training.steps * training.batch_size
    validations = training.epochs * settings.trials.val
    trained, total = bool(method.propagation and method.propagation.training), Work()
    for shots in (training.exemplars,) if training.exemplars else settings.shots:
        step = _weighing(method, features, BASE - training.novel, training.novel, shots, trained)
        step += _scoring(asked, BASE, features)
        test = _weighing(method, features, BASE, NOVEL["val"], shots, trained)
        test += _scoring(queries.images["val"], NOVEL["val"], features)
        rows = training.novel * shots + asked
        total += step * (TRAINING * episodes) + test * validations + Work(rows=rows * episodes)
    return total


def _trials(plan: ImageNetFsPlan, job: Job, queries: Size) -> Work:
    """The test of a generator, with every K."""
    settings, method = plan.settings, plan.methods[job.recipe]
    tested = queries.images["novel"] + queries.images["base"] * SCORED_BASE / BASE
    features, total = _features(plan, job), Work()
    for shots in settings.shots:
        one = _weighing(method, features, BASE, NOVEL["novel"], shots, True)
        one += _scoring(tested, SCORED_BASE + NOVEL["novel"], features)
        total += (one + Work(rows=NOVEL["novel"] * shots)) * settings.trials.novel
    return total


def _features(plan: ImageNetFsPlan, job: Job) -> int:
    return feature_size(plan.backbone(job.backbone))


def _weighing(
    method: Method, features: int, base: int, novel: int, shots: int, propagated: bool
) -> Work:
    """Weights of novel classes beside base ones, once."""
    generator, nodes, work = method.generator, base + novel, Work()
    if isinstance(generator, LwofAttention):
        exemplars = novel * shots
        attended = exemplars * features * (features + base) + novel * base * features
        work += Work(multiply_adds=attended, values=exemplars * base)
    if isinstance(generator, WdaeGnn):
        hidden = generator.hidden * features
        layers = features * hidden + 2 * (features + hidden) * hidden
        layers += (features + 2 * hidden) * 2 * features
        messages = nodes * generator.neighbours * hidden
        graph = nodes * nodes * features
        work += Work(nodes * layers + graph + 2 * messages, 4 * messages + nodes * hidden)
    if method.propagation is not None and propagated:
        spread = nodes if method.propagation.nodes == "all" else novel
        work += solving([(1, spread)])
    return work


def _scoring(queries: float, classes: int, features: int) -> Work:
    """Queries compared with the weights of classes."""
    return Work(multiply_adds=queries * classes * features, values=queries * classes)
