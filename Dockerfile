# One image for every role: `serve`, `gateway`, `engine`, `models`.

# The page is built with Node.js, which the service itself does not need.
FROM node:22-slim AS page
WORKDIR /app/web
COPY web/package.json web/package-lock.json web/.npmrc ./
RUN npm ci
COPY web ./
RUN npm run build

# The kernels are built with a compiler, which the service itself does not need.
FROM python:3.11 AS kernels
WORKDIR /app
COPY kernels/cpu kernels/cpu
RUN python kernels/cpu/build.py

FROM python:3.11-slim
WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir -r requirements.lock
COPY LICENSE README.md pyproject.toml ./
COPY scripts/hatch_build.py scripts/hatch_build.py
COPY kernels kernels
COPY --from=kernels /app/kernels/cpu/lib kernels/cpu/lib
COPY chatserve chatserve
COPY --from=page /app/chatserve/gateway/static chatserve/gateway/static
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && useradd --create-home chatserve \
    && install --directory --owner chatserve /data

USER chatserve
ENV CHATSERVE_DATA_DIR=/data
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["chatserve"]
CMD ["serve", "--host", "0.0.0.0"]
