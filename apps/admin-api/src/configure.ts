import type { INestApplication } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpKernel } from './http/http-kernel.js';
import { openapiDocument } from './openapi.js';
import { SignInPages } from './sign-in.pages.js';

const document = Buffer.from(JSON.stringify(openapiDocument({ version: '0.1.0' })));

/** Puts the API in front of everything else that Nest would do with a request. */
export function configureHttp(app: INestApplication): void {
  const kernel = app.get(HttpKernel);
  app.use('/v1/openapi.json', (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': document.byteLength });
    response.end(document);
  });
  app.use(app.get(SignInPages).handle);
  app.use(kernel.handle);
}
