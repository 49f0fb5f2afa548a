"""Models of text for tests, which serve a copy of this file."""

import itertools
import pathlib
import time

import torchlite as torch

TEXT = "the cat sat on the mat. the dog sat on the log. the cat and the dog ate.\n"
LETTERS = sorted(set(TEXT))


class Letters(torch.nn.Module):
    """Writes the next letter by how often it follows the one before."""

    def __init__(self):
        super().__init__()
        counts = torch.full((len(LETTERS), len(LETTERS)), 1e-3)
        for before, after in itertools.pairwise(TEXT):
            counts[LETTERS.index(before), LETTERS.index(after)] += 1
        self.scores = torch.nn.Embedding.from_pretrained(counts.log())

    def generate(self, prompt, *, temperature=1.0, seed=None):
        """Yield letters without an end; the most frequent ones for the temperature 0."""
        generator = torch.Generator()
        generator.seed() if seed is None else generator.manual_seed(seed)
        place = LETTERS.index(prompt[-1]) if prompt[-1:] in LETTERS else 0
        while True:
            scores = self.scores(torch.tensor(place))
            if temperature:
                place = int(torch.multinomial(torch.softmax(scores / temperature, 0), 1, generator=generator))
            else:
                place = int(scores.argmax())
            yield LETTERS[place]

    def count_tokens(self, text):
        """Return the number of letters."""
        return len(text)

    def chat_prompt(self, messages):
        """Return the prompt of a conversation."""
        return "".join(f"{message['role']}: {message['content']}\n" for message in messages) + "assistant: "


class Script:
    """Says its prompt's words, one after the other; some of them do something else."""

    def generate(self, prompt, **options):
        """Yield the words. `wait` waits for a file `go` beside this one, `fail` raises, `options` says what came."""
        for word in prompt.split(" "):
            if word == "wait":
                while not pathlib.Path(__file__).with_name("go").exists():
                    time.sleep(0.01)
            elif word == "fail":
                raise AttributeError("the script says so")
            elif word == "number":
                yield 5
            elif word == "options":
                yield ",".join(f"{key}={value}" for key, value in sorted(options.items()))
            elif word == "forever":
                while True:
                    time.sleep(0.005)
                    with pathlib.Path(__file__).with_name("said").open("a") as said:
                        said.write(".")
                    yield "."
            else:
                yield word

    def count_tokens(self, text):
        """Return the number of words."""
        return len(text.split(" "))
