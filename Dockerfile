# The exact version of the base is pinned; pin its digest too when you build for production.
FROM node:24.21.0-bookworm-slim AS bundles
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY bin ./bin
COPY scripts/bundle-libraries.mjs ./scripts/
RUN node scripts/bundle-libraries.mjs

FROM node:24.21.0-bookworm-slim

WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has its own Node.js and its Redis beside it, so the optional runtimes stay out.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
# Made where the bundler is; see bin/library-bundles.mjs.
COPY --from=bundles /app/node_modules/@anthropic-ai/sdk/.bundle ./node_modules/@anthropic-ai/sdk/.bundle
COPY --from=bundles /app/node_modules/kysely/.bundle ./node_modules/kysely/.bundle
COPY --from=bundles /app/node_modules/zod/.bundle ./node_modules/zod/.bundle
COPY tsconfig.json ./
COPY bin ./bin
COPY src ./src
COPY channels ./channels
COPY plugins ./plugins

ENV NODE_ENV=production PARLEY_DATA_DIR=/data PARLEY_HOST=0.0.0.0
RUN mkdir /data && chown node:node /data && chmod 700 /data
VOLUME /data
USER 1000:1000
EXPOSE 7411
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7411/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "bin/parley.mjs", "start"]
