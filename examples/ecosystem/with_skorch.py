"""skorch: a network as scikit-learn's classifier and regressor, in a search and a pipeline."""

import pickle

import numpy as np
import torch
from show import show
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, GradientNormClipping, LRScheduler

X, y = make_classification(80, 6, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)


def network(out=2):
    return torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(12, out))


torch.manual_seed(0)
net = NeuralNetClassifier(
    network(), criterion=torch.nn.CrossEntropyLoss, max_epochs=5, lr=0.1, verbose=0, train_split=None,
    callbacks=[LRScheduler("StepLR", step_size=2), GradientNormClipping(1.0),
               EpochScoring("accuracy", on_train=True)],
)  # fmt: skip
net.fit(X, y)
show("classifier.losses", net.history[:, "train_loss"])
show("classifier.accuracy", net.history[:, "accuracy"])
show("classifier.probabilities", net.predict_proba(X))
show("classifier.pickled", pickle.loads(pickle.dumps(net)).predict_proba(X))
torch.manual_seed(1)
regressor = NeuralNetRegressor(network(1), max_epochs=3, optimizer=torch.optim.Adam, verbose=0, train_split=None)
show("regressor", make_pipeline(StandardScaler(), regressor).fit(X, X[:, :1]).predict(X))
torch.manual_seed(2)
search = GridSearchCV(
    NeuralNetClassifier(network, criterion=torch.nn.CrossEntropyLoss, max_epochs=2, verbose=0, train_split=None),
    {"lr": [0.01, 0.3]}, cv=2, scoring="accuracy",
)  # fmt: skip
show("search", search.fit(X, y).cv_results_["mean_test_score"])
