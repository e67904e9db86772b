import { createServer, type Server } from 'node:http';
import type { Metrics } from './metrics.js';
import type { Readiness } from './readiness.js';

export interface OpsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves `/livez`, `/readyz` and `/metrics` for whoever runs the process. Port 0 takes a free one. */
export async function startOpsServer(
  at: { readonly host: string; readonly port: number },
  readiness: Readiness,
  metrics: Metrics,
): Promise<OpsServer> {
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const path = request.url?.split('?')[0];
      if (path === '/livez') {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"live":true}');
      } else if (path === '/readyz') {
        const report = await readiness.report();
        response.writeHead(report.ready ? 200 : 503, { 'content-type': 'application/json' }).end(JSON.stringify(report));
      } else if (path === '/metrics') {
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(await metrics.text());
      } else {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"try /livez, /readyz or /metrics"}');
      }
    };
    answer().catch(() => response.writeHead(500).end());
  });
  await listening(server, at);
  const address = server.address();
  return {
    // Port 0 asked for any free one: this is the one that was given.
    port: typeof address === 'object' && address !== null ? address.port : at.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, at: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}
