# The exact version of the base is pinned; pin its digest too when you build for production.
FROM node:24.21.0-bookworm-slim AS bundle
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts
COPY bin ./bin
COPY src ./src
COPY channels ./channels
COPY plugins ./plugins
COPY scripts/bundle.mjs ./scripts/
RUN node scripts/bundle.mjs --package

FROM node:24.21.0-bookworm-slim

WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has its own Node.js, its Redis beside it and its bundle made, so what is optional stays out.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
COPY bin ./bin
COPY --from=bundle /app/dist ./dist
# `docker compose exec parley parley …`, as Parley's texts name it.
RUN ln -s /app/bin/parley.mjs /usr/local/bin/parley

ENV NODE_ENV=production PARLEY_DATA_DIR=/data PARLEY_HOST=0.0.0.0
RUN mkdir /data /backups && chown node:node /data /backups && chmod 700 /data /backups
VOLUME /data
USER 1000:1000
EXPOSE 7411
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7411/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "bin/parley.mjs", "start"]
