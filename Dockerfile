# One image for every process of Ambit; APP names the one it runs.
#   docker build --build-arg APP=session-service -t ambit/session-service .
# Everything before the last lines is the same for all of them, so that building the second costs nothing, and storing it too.
FROM node:24-bookworm-slim AS manifests
WORKDIR /src
COPY . .
# Nothing but what npm reads: a change of a source file must not install everything again.
RUN mkdir /manifests \
 && find . -name package.json -not -path '*/node_modules/*' -exec cp --parents {} /manifests \; \
 && cp package-lock.json .npmrc /manifests

FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY --from=manifests /manifests .
RUN npm ci --ignore-scripts --loglevel=error
COPY . .
RUN node --input-type=module -e "await (await import('./tools/build.mjs')).build(console.log)"

FROM build AS production
# The workspaces that run in the image; everything else goes: development tools, types, compilers for other databases.
ARG KEEP="apps/init apps/session-service apps/tool-gateway apps/mcp-broker apps/mcp-runner apps/skill-store apps/plugin-registry apps/admin-api apps/mcp-edge apps/cli"
RUN node deploy/images/keep-production.mjs $KEEP \
 && find . \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -path './node_modules/*.map' \) -delete \
 && rm -f node_modules/@prisma/client/runtime/*.cockroachdb.* node_modules/@prisma/client/runtime/*.mysql.* \
      node_modules/@prisma/client/runtime/*.sqlite.* node_modules/@prisma/client/runtime/*.sqlserver.* \
 && mkdir /app \
 && find libs apps examples -maxdepth 2 \( -name dist -o -name bin -o -name node_modules -o -name package.json \) -exec cp -r --parents {} /app \; \
 && cp -r --parents package.json LICENSE node_modules prisma/migrations /app

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=production /app .
# Volumes that are mounted here for the first time take their owner from these folders.
RUN mkdir -p /keys /run/ambit /data /handout \
 && for name in init nats session-service tool-gateway mcp-broker mcp-runner skill-store plugin-registry admin-api mcp-edge; do mkdir /handout/$name; done \
 && chown -R node:node /keys /run/ambit /data /handout
USER node
EXPOSE 9090
ARG APP
# In a container, what may be reached is decided by what is published.
ENV APP=${APP} OPS_PORT=9090 AMBIT_LISTEN=0.0.0.0
CMD ["/bin/sh", "-c", "exec node $(test ! -f /run/ambit/service.env || echo --env-file=/run/ambit/service.env) --max-semi-space-size=8 apps/$APP/dist/main.js"]
