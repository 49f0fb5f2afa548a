"""torchmetrics: classification, regression, images, retrieval, text; functional and as modules."""

import torch
import torchmetrics as tm
import torchmetrics.functional as F
from show import show

torch.manual_seed(0)
scores, target = torch.rand(40, 4).softmax(-1), torch.randint(0, 4, (40,))
for name in ("Accuracy", "Precision", "Recall", "F1Score", "AUROC", "AveragePrecision", "ConfusionMatrix", "CohenKappa",
             "MatthewsCorrCoef", "CalibrationError", "JaccardIndex", "Specificity"):  # fmt: skip
    metric = getattr(tm, name)(task="multiclass", num_classes=4)
    for part in range(0, 40, 10):
        metric.update(scores[part : part + 10], target[part : part + 10])
    show(f"multiclass.{name}", metric.compute().float())
binary, labels = torch.rand(50), torch.randint(0, 2, (50,))
show("binary.auroc", F.auroc(binary, labels, task="binary"))
show("binary.roc", F.roc(binary, labels, task="binary")[1])
show("binary.curve", F.precision_recall_curve(binary, labels, task="binary")[0])
show("binary.hinge", F.hinge_loss(binary, labels, task="binary"))
a, b = torch.randn(60), torch.randn(60)
for name in ("mean_squared_error", "mean_absolute_error", "r2_score", "explained_variance", "pearson_corrcoef",
             "spearman_corrcoef", "kendall_rank_corrcoef", "concordance_corrcoef", "cosine_similarity"):  # fmt: skip
    args = (a[None], b[None]) if name == "cosine_similarity" else (a, b)
    show(f"regression.{name}", getattr(F, name)(*args))
image, other = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
show("image.ssim", F.structural_similarity_index_measure(image, other, data_range=1.0))
show("image.psnr", F.peak_signal_noise_ratio(image, other, data_range=1.0))
show("image.variation", F.total_variation(image))
show("image.uqi", F.universal_image_quality_index(image, other))
show("image.sam", F.spectral_angle_mapper(image, other))
show("retrieval.ndcg", F.retrieval_normalized_dcg(binary, labels))
show("retrieval.map", F.retrieval_average_precision(binary, labels))
show("text.cer", F.char_error_rate(["hello world"], ["hallo welt"]))
show("text.bleu", F.bleu_score(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]]))
show("audio.snr", F.signal_noise_ratio(a, b))
show("audio.sisdr", F.scale_invariant_signal_distortion_ratio(a, b))
collection = tm.MetricCollection([tm.MeanSquaredError(), tm.MeanAbsoluteError(), tm.R2Score()])
for name, value in collection(a, b).items():
    show(f"collection.{name}", value)
mean = tm.MeanMetric()
mean(a)
mean(b)
show("mean", mean.compute())
tracker = tm.MetricTracker(tm.MeanSquaredError(), maximize=False)
for step in range(3):
    tracker.increment()
    tracker.update(a * step, b)
show("tracker", tracker.compute_all())
show("bootstrap", list(tm.wrappers.MinMaxMetric(tm.MeanSquaredError())(a, b).values()))
