"""transformers: seven models with small random configurations, forward, backward, generation, saving and loading."""

import tempfile

import torch
import transformers as tf
from show import gradients, show

tf.logging.set_verbosity_error()
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
IDS = torch.arange(24).reshape(2, 12) * 7 % 90 + 5
MASK = torch.ones(2, 12, dtype=torch.long)
MASK[1, 8:] = 0


def made(cls, config):
    torch.manual_seed(0)
    return cls(config).eval()


def trained(name, model, **inputs):
    """Loss and gradients, then three steps of AdamW."""
    out = model(**inputs)
    show(f"{name}.loss", out.loss)
    show(f"{name}.logits", out.logits)
    out.loss.backward()
    show(f"{name}.gradients", gradients(model))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        model(**inputs).loss.backward()
        optimizer.step()
    show(f"{name}.trained", model(**inputs).loss)


def kept(name, model, **inputs):
    """The same result after a save and a load."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
        show(f"{name}.again", again(**inputs)[0])


def generated(name, model, **inputs):
    """Greedy, by beams, and sampled."""
    show(f"{name}.greedy", model.generate(**inputs, max_new_tokens=8, do_sample=False))
    show(f"{name}.beams", model.generate(**inputs, max_new_tokens=8, num_beams=3, do_sample=False))
    torch.manual_seed(1)
    show(f"{name}.sampled", model.generate(**inputs, max_new_tokens=8, do_sample=True, top_k=20, top_p=0.9))


bert = made(tf.BertForSequenceClassification, tf.BertConfig(vocab_size=99, **SMALL))
trained("bert", bert, input_ids=IDS, attention_mask=MASK, labels=torch.tensor([0, 1]))
kept("bert", bert, input_ids=IDS, attention_mask=MASK)

distil = made(
    tf.DistilBertForMaskedLM, tf.DistilBertConfig(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=48)
)
trained("distilbert", distil, input_ids=IDS, attention_mask=MASK, labels=IDS)

gpt = made(
    tf.GPT2LMHeadModel,
    tf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0),
)
trained("gpt2", gpt, input_ids=IDS, labels=IDS)
generated("gpt2", gpt, input_ids=IDS, attention_mask=MASK.fill_(1))
kept("gpt2", gpt, input_ids=IDS)

llama = made(
    tf.LlamaForCausalLM,
    tf.LlamaConfig(vocab_size=99, num_key_value_heads=2, bos_token_id=1, eos_token_id=2, pad_token_id=0, **SMALL),
)
trained("llama", llama, input_ids=IDS, labels=IDS)
generated("llama", llama, input_ids=IDS, attention_mask=MASK)

vit = made(tf.ViTForImageClassification, tf.ViTConfig(image_size=16, patch_size=4, num_labels=5, **SMALL))
torch.manual_seed(2)
pixels = torch.randn(2, 3, 16, 16)
trained("vit", vit, pixel_values=pixels, labels=torch.tensor([1, 4]))
kept("vit", vit, pixel_values=pixels)

t5 = made(
    tf.T5ForConditionalGeneration,
    tf.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
)
trained("t5", t5, input_ids=IDS, labels=IDS[:, :6].contiguous())
generated("t5", t5, input_ids=IDS)

whisper = made(
    tf.WhisperForConditionalGeneration,
    tf.WhisperConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=20,
        max_target_positions=40, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        suppress_tokens=None, begin_suppress_tokens=None,
    ),
)  # fmt: skip
sound = torch.randn(2, 8, 40)
trained("whisper", whisper, input_features=sound, labels=IDS)
kept("whisper", whisper, input_features=sound, decoder_input_ids=IDS)
