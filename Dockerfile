# One image for every process of Ambit; APP names the one it runs.
#   docker build --build-arg APP=session-service -t ambit/session-service .
# Everything before the last lines is the same for all of them, so that building the second costs nothing.
FROM node:24-bookworm-slim AS manifests
WORKDIR /src
COPY . .
# Nothing but what npm reads: a change of a source file must not install everything again.
RUN mkdir /manifests \
 && find . -name package.json -not -path '*/node_modules/*' -exec cp --parents {} /manifests \; \
 && cp package-lock.json .npmrc /manifests

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY --from=manifests /manifests .
# No install script is run: what these packages download or link is not needed by the services.
RUN npm ci --omit=dev --ignore-scripts --loglevel=error \
      --workspace=apps/init --workspace=apps/session-service --workspace=apps/tool-gateway --workspace=apps/mcp-broker \
      --workspace=apps/mcp-runner --workspace=apps/skill-store --workspace=apps/plugin-registry --workspace=apps/admin-api

FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY --from=manifests /manifests .
RUN npm ci --ignore-scripts --loglevel=error
COPY . .
RUN node --input-type=module -e "await (await import('./tools/build.mjs')).build(console.log)" \
 && mkdir /built \
 && find libs apps -maxdepth 2 -name dist -exec cp -r --parents {} /built \; \
 && cp -r --parents prisma/migrations /built

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app .
COPY --from=build /built .
# Volumes that are mounted here for the first time take their owner from these folders.
RUN mkdir -p /keys /run/ambit /data /handout \
 && for name in init nats session-service tool-gateway mcp-broker mcp-runner skill-store plugin-registry admin-api; do mkdir /handout/$name; done \
 && chown -R node:node /keys /run/ambit /data /handout
USER node
EXPOSE 9090
ARG APP
ENV APP=${APP} OPS_PORT=9090
CMD ["/bin/sh", "-c", "exec node --env-file-if-exists=/run/ambit/service.env --enable-source-maps apps/$APP/dist/main.js"]
