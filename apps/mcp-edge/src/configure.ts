import type { INestApplication } from '@nestjs/common';
import { EdgeKernel } from './http/edge-kernel.js';

/** Puts the endpoint in front of everything else that Nest would do with a request. */
export function configureHttp(app: INestApplication): void {
  app.use(app.get(EdgeKernel).handle);
}
