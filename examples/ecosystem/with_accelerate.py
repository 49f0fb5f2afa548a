"""accelerate, peft and transformers' Trainer: a model with LoRA is trained, saved, loaded and merged."""

import tempfile

import torch
import transformers as tf
from accelerate import Accelerator
from peft import LoraConfig, PeftModel, get_peft_model
from show import gradients, show

tf.logging.set_verbosity_error()
CONFIG = tf.LlamaConfig(
    vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=48, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)  # fmt: skip
IDS = torch.arange(64).reshape(8, 8) * 5 % 47 + 3

torch.manual_seed(0)
model = get_peft_model(
    tf.LlamaForCausalLM(CONFIG), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.0)
)
show("lora.parameters", sum(p.numel() for p in model.parameters() if p.requires_grad))
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(IDS), batch_size=2, shuffle=False)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
losses = []
for (ids,) in loader:
    with accelerator.accumulate(model):
        loss = model(input_ids=ids, labels=ids).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if not accelerator.sync_gradients:
            show("lora.gradients", gradients(model))
        optimizer.zero_grad()
show("lora.losses", losses)
with tempfile.TemporaryDirectory() as folder:
    accelerator.unwrap_model(model).save_pretrained(folder)
    torch.manual_seed(0)
    again = PeftModel.from_pretrained(tf.LlamaForCausalLM(CONFIG), folder).eval()
    with torch.no_grad():
        show("lora.again", again(input_ids=IDS[:2]).logits)
        show("lora.merged", again.merge_and_unload()(input_ids=IDS[:2]).logits)
    accelerator.save_state(f"{folder}/state")
    accelerator.load_state(f"{folder}/state")

    torch.manual_seed(1)
    data = [{"input_ids": row, "labels": row} for row in IDS]
    trainer = tf.Trainer(
        model=tf.LlamaForCausalLM(CONFIG),
        args=tf.TrainingArguments(
            output_dir=folder, max_steps=4, per_device_train_batch_size=4, learning_rate=1e-2, logging_steps=1,
            report_to=[], use_cpu=True, seed=3, save_strategy="no", disable_tqdm=True, gradient_checkpointing=True,
        ),
        train_dataset=data, eval_dataset=data,
    )  # fmt: skip
    result = trainer.train()
    show("trainer.loss", result.training_loss)
    show("trainer.losses", [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    show("trainer.evaluated", trainer.evaluate()["eval_loss"])
    show("trainer.predicted", torch.as_tensor(trainer.predict(data).predictions))
