"""Train a GPT-2 with random weights on random tokens."""

import argparse
import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from transformers import GPT2Config, GPT2LMHeadModel

from scaling_client import epoch

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4, help="sequences per GPU")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--sequences", type=int, default=320, help="of an epoch, on all GPUs together")
parser.add_argument("--layers", type=int, default=12)
parser.add_argument("--width", type=int, default=768)
parser.add_argument("--length", type=int, default=1024, help="tokens of a sequence")
args = parser.parse_args()

on_gpu = torch.cuda.is_available()
device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else "cpu")
if on_gpu:
    torch.cuda.set_device(device)
distributed.init_process_group("nccl" if on_gpu else "gloo")

torch.manual_seed(args.seed)
heads = args.width // 64
config = GPT2Config(n_layer=args.layers, n_embd=args.width, n_head=heads, use_cache=False)
model = DistributedDataParallel(GPT2LMHeadModel(config).to(device))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

torch.manual_seed(args.seed + 1 + distributed.get_rank())
steps = args.sequences // (args.batch_size * distributed.get_world_size())
shape = steps, args.batch_size, args.length
tokens = torch.randint(config.vocab_size, shape, device=device)

for number in range(args.epochs):
    total = 0.0
    for batch in tokens:
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    trained_on = tokens.numel() * distributed.get_world_size()
    epoch(number, samples=trained_on, loss=total / steps)
distributed.destroy_process_group()
