# The gateway, with PostgreSQL support. See docs/deploy.md.
FROM python:3.13-slim AS build
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/toolscout \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /source
RUN pip install --no-cache-dir uv==0.13.8
# The dependencies have a layer of their own, which changes only with the lock file.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --extra postgres --extra otlp --no-install-project
COPY LICENSE NOTICE README.md ./
COPY src src
RUN uv sync --frozen --no-dev --extra postgres --extra otlp --no-editable

FROM python:3.13-slim
RUN groupadd --gid 10001 toolscout \
    && useradd --uid 10001 --gid toolscout --home-dir /var/lib/toolscout --create-home --shell /usr/sbin/nologin toolscout
COPY --from=build /opt/toolscout /opt/toolscout
# The root may be read-only. Only the data folder, /var/lib/toolscout, and /tmp are written to.
ENV PATH=/opt/toolscout/bin:$PATH \
    HOME=/var/lib/toolscout \
    XDG_CONFIG_HOME=/etc \
    XDG_DATA_HOME=/var/lib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
VOLUME /var/lib/toolscout
EXPOSE 8080 9090
# Alive, not ready: a gateway whose database is down still answers, and should not be killed.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from http.client import HTTPConnection as H; c = H('127.0.0.1', 9090, timeout=4); c.request('GET', '/livez'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["toolscout"]
CMD ["serve", "--http", "0.0.0.0:8080", "--diagnostics", "0.0.0.0:9090"]
