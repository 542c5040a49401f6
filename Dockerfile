# docker build -t saferank . ; docker run --rm -v "$PWD:/work" saferank doctor log.parquet   (docs/docker.md)
FROM python:3.12-slim

# LightGBM needs OpenMP's library, which the slim image lacks.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*

# Where to find wheels of torch without CUDA; without it, pip takes those with CUDA, which are gigabytes.
ARG PIP_EXTRA_INDEX_URL
COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir --disable-pip-version-check -c /src/constraints.txt "/src[onnx,mlflow]"

RUN useradd --create-home --uid 1000 ranker
USER ranker
WORKDIR /work
ENTRYPOINT ["saferank"]
CMD ["--help"]
