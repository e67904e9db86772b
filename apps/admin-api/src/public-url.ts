import { CONFIG } from '@ambit/service';
import { HttpAdapterHost } from '@nestjs/core';
import { Inject, Injectable } from '@nestjs/common';
import type { AdminApiConfig } from './config.js';

export const CALLBACK_PATH = '/oauth/callback';
export const CLIENT_PATH = '/oauth/client.json';

/** Where browsers and authorization servers find this API. */
@Injectable()
export class PublicUrl {
  constructor(
    @Inject(CONFIG) private readonly config: AdminApiConfig,
    private readonly adapter: HttpAdapterHost,
  ) {}

  /** As configured, else this machine's own address. */
  get base(): URL {
    return new URL(this.config.AMBIT_PUBLIC_URL ?? `http://127.0.0.1:${this.port()}`);
  }
  get callback(): string {
    return new URL(CALLBACK_PATH, this.base).href;
  }
  /** Our document for authorization servers; null where they could not trust it. */
  get client(): string | null {
    return this.base.protocol === 'https:' ? new URL(CLIENT_PATH, this.base).href : null;
  }
  /** Without a public address only this machine's own name for us is served to browsers: no other name can lead them here. */
  isOurs(host: string | undefined): boolean {
    return this.config.AMBIT_PUBLIC_URL !== undefined || host === this.base.host || host === `localhost:${this.port()}`;
  }

  private port(): number {
    const server: unknown = this.adapter.httpAdapter.getHttpServer();
    const address: unknown =
      typeof server === 'object' && server !== null && 'address' in server && typeof server.address === 'function'
        ? server.address()
        : null;
    if (typeof address === 'object' && address !== null && 'port' in address && typeof address.port === 'number') return address.port;
    return this.config.AMBIT_HTTP_PORT;
  }
}
