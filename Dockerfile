FROM python:3.11-slim AS build

# On Linux x86-64 the default torch build carries gigabytes of CUDA libraries that nothing here uses.
# To get the CPU build, pass the address of an index that has it:
#   docker build --build-arg PIP_EXTRA_INDEX_URL=... .
# The pin torch==2.13.0 accepts 2.13.0+cpu, and pip prefers it where both are offered. Empty arguments
# are ignored by pip. PIP_INDEX_URL replaces the default index, for a mirror of one's own.
ARG PIP_EXTRA_INDEX_URL=""
ARG PIP_INDEX_URL=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1

RUN python -m venv /opt/contextforge
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY service service
COPY sql sql
COPY migrations migrations
COPY docs docs
RUN --mount=type=cache,target=/root/.cache/pip \
    /opt/contextforge/bin/pip install -c constraints.txt .


FROM python:3.11-slim

RUN useradd --create-home --uid 10001 contextforge
COPY --from=build /opt/contextforge /opt/contextforge
ENV PATH=/opt/contextforge/bin:$PATH \
    PYTHONUNBUFFERED=1
USER contextforge
WORKDIR /home/contextforge

EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]

ENTRYPOINT ["contextforge"]
CMD ["serve", "--host", "0.0.0.0"]
