# The image runs any part: `web` (the default), `worker`, `migrate`, `simulator`, and every other command.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /app
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv .venv
COPY requirements requirements
RUN .venv/bin/pip install --require-hashes --requirement requirements/run.txt
COPY pyproject.toml ./
COPY dashboard dashboard
RUN .venv/bin/pip install --no-deps --no-index --no-build-isolation --editable .

# A stage of its own, since npm comes into its virtual environment and must not stay in the image.
FROM build AS assets
COPY static static
RUN .venv/bin/python -m dashboard.cli.assets

FROM python:${PYTHON}-slim
RUN useradd --system --user-group --no-create-home --uid 10001 sendonce
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH PYTHONUNBUFFERED=1
COPY --from=build /app/.venv .venv
COPY pyproject.toml ./
COPY dashboard dashboard
COPY templates templates
COPY static static
COPY --from=assets /app/static/vendor static/vendor
USER sendonce
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["sendonce"]
CMD ["web", "--host", "0.0.0.0"]
