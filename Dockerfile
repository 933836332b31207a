# The pipeline with its lock, LaTeX included: docker build -t epnet . && docker run epnet make
# GPUs need an index with CUDA wheels, as PyPI is, and docker's --gpus all.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends git latexmk make poppler-utils \
       texlive-latex-base texlive-latex-recommended \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /epnet
COPY . .
RUN make .venv/installed
ENV PATH="/epnet/.venv/bin:$PATH"
CMD ["make"]
