"""A neural network of Spark MLlib, in epochs. It knows nothing of PipeTune and nothing of BigDL."""
import argparse

from pyspark.ml.classification import MultilayerPerceptronClassifier
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, rand, randn, when

options = argparse.ArgumentParser()
options.add_argument("--hidden", type=int, default=16)
options.add_argument("--block", type=int, default=128)
options.add_argument("--epochs", type=int, default=4)
options.add_argument("--rows", type=int, default=20000)
options.add_argument("--seed", type=int, default=1)
o = options.parse_args()

spark = SparkSession.builder.appName("mllib").getOrCreate()
rows = spark.range(o.rows)
for i in range(8):
    rows = rows.withColumn(f"x{i}", randn(o.seed + i))
label = when(col("x0") * col("x1") + col("x2") > 0.3 * rand(o.seed), 1.0).otherwise(0.0)
rows = VectorAssembler(inputCols=[f"x{i}" for i in range(8)], outputCol="features").transform(rows.withColumn("label", label))
train, test = rows.select("features", "label").randomSplit([0.8, 0.2], o.seed)
train, test = train.cache(), test.cache()

weights = None
judge = MulticlassClassificationEvaluator(metricName="accuracy")
for epoch in range(1, o.epochs + 1):
    mlp = MultilayerPerceptronClassifier(layers=[8, o.hidden, 2], maxIter=5, blockSize=o.block, seed=o.seed)
    if weights is not None:
        mlp = mlp.setInitialWeights(weights)
    model = mlp.fit(train)
    weights = model.weights
    accuracy, losses = judge.evaluate(model.transform(test)), model.summary().objectiveHistory
    print(f"epoch {epoch}: loss {losses[-1]:.4f}, accuracy {accuracy:.4f}", flush=True)
spark.stop()
