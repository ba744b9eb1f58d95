PRAGMA application_id = 0;
PRAGMA user_version = 0;
BEGIN TRANSACTION;
CREATE TABLE batches (
	name VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (name, campaign)
);
INSERT INTO "batches" VALUES('20210301T000000Z-000001-41a595a0d70a07f2','words',1,'41a595a0d70a07f2','20210301T000000Z','made');
INSERT INTO "batches" VALUES('20210303T000000Z-000001-41a595a0d70a07f2','words',1,'41a595a0d70a07f2','20210303T000000Z','made');
INSERT INTO "batches" VALUES('20210307T000000Z-000001-41a595a0d70a07f2','words',1,'41a595a0d70a07f2','20210307T000000Z','made');
CREATE TABLE deleted (
	campaign VARCHAR NOT NULL, 
	folder VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	complete BOOLEAN NOT NULL, 
	PRIMARY KEY (campaign, folder, batch)
);
CREATE TABLE hops (
	campaign VARCHAR NOT NULL, 
	batch VARCHAR NOT NULL, 
	hop VARCHAR NOT NULL, 
	counts TEXT NOT NULL, 
	folder VARCHAR, 
	finished_at VARCHAR NOT NULL, 
	PRIMARY KEY (campaign, batch, hop)
);
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-41a595a0d70a07f2','shuffle','{"accepted": 201, "hop": "shuffle", "received": 201, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}, "reports": {"accepted": 129, "received": 129, "rejected": {}}}}',NULL,'2026-11-22T20:44:24+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-41a595a0d70a07f2','release','{"accepted": 72, "hop": "release", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-22T20:44:25+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-41a595a0d70a07f2','discover','{"accepted": 72, "hop": "discover", "received": 72, "rejected": {}, "streams": {"discovery": {"accepted": 72, "received": 72, "rejected": {}}}}',NULL,'2026-11-22T20:44:26+00:00');
INSERT INTO "hops" VALUES('words','20210301T000000Z-000001-41a595a0d70a07f2','analyze','{"accepted": 78, "hop": "analyze", "received": 129, "rejected": {"wrong_campaign": 51}, "streams": {"reports": {"accepted": 78, "received": 129, "rejected": {"wrong_campaign": 51}}}}',NULL,'2026-11-22T20:44:27+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-41a595a0d70a07f2','shuffle','{"accepted": 60, "hop": "shuffle", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-22T20:44:28+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-41a595a0d70a07f2','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:44:28+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-41a595a0d70a07f2','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:44:28+00:00');
INSERT INTO "hops" VALUES('words','20210303T000000Z-000001-41a595a0d70a07f2','analyze','{"accepted": 60, "hop": "analyze", "received": 60, "rejected": {}, "streams": {"reports": {"accepted": 60, "received": 60, "rejected": {}}}}',NULL,'2026-11-22T20:44:29+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-41a595a0d70a07f2','shuffle','{"accepted": 54, "hop": "shuffle", "received": 54, "rejected": {}, "streams": {"reports": {"accepted": 54, "received": 54, "rejected": {}}}}',NULL,'2026-11-22T20:44:29+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-41a595a0d70a07f2','release','{"accepted": 0, "hop": "release", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:44:29+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-41a595a0d70a07f2','discover','{"accepted": 0, "hop": "discover", "received": 0, "rejected": {}, "streams": {}}',NULL,'2026-11-22T20:44:29+00:00');
INSERT INTO "hops" VALUES('words','20210307T000000Z-000001-41a595a0d70a07f2','analyze','{"accepted": 0, "hop": "analyze", "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}, "streams": {"reports": {"accepted": 0, "received": 54, "rejected": {"below_minimum": 3, "wrong_campaign": 51}}}}',NULL,'2026-11-22T20:44:30+00:00');
CREATE TABLE hushcount_state (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "hushcount_state" VALUES(4);
CREATE TABLE manifests (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	collector VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	refused TEXT NOT NULL, 
	damaged INTEGER NOT NULL, 
	PRIMARY KEY (path)
);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210301T000000Z/one.manifest.json','words',1,'41a595a0d70a07f2','20210301T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210301T000000Z/two.manifest.json','words',1,'41a595a0d70a07f2','20210301T000000Z',86400,'two','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210302T000000Z/one.manifest.json','words',1,'41a595a0d70a07f2','20210302T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210303T000000Z/one.manifest.json','words',1,'41a595a0d70a07f2','20210303T000000Z',86400,'one','none','{}',0);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210307T000000Z/one.manifest.json','words',1,'41a595a0d70a07f2','20210307T000000Z',86400,'one','client-token','{}',0);
INSERT INTO "manifests" VALUES('words/000001-41a595a0d70a07f2/20210311T000000Z/one.manifest.json','words',1,'41a595a0d70a07f2','20210311T000000Z',86400,'one','client-token','{}',0);
CREATE TABLE runs (
	token BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	at VARCHAR
);
INSERT INTO "runs" VALUES(1,'1e09b121aac1d7b0','2026-11-22T20:44:22.545559+00:00');
CREATE TABLE segments (
	path VARCHAR NOT NULL, 
	campaign VARCHAR NOT NULL, 
	epoch INTEGER NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	records BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	digest VARCHAR NOT NULL, 
	authentication VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	batch VARCHAR, 
	reason VARCHAR, 
	PRIMARY KEY (path)
);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210301T000000Z/reports/one-000000.blocks','words',1,'41a595a0d70a07f2','20210301T000000Z','reports',72,7696,'9cccd76635386816dfbd9eeaa698f71069beb48a57cd050a59b78e941bc81558','client-token','batched','20210301T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210301T000000Z/discovery/one-000000.blocks','words',1,'41a595a0d70a07f2','20210301T000000Z','discovery',72,15832,'d7c7fd35f43719f2b17ee32c5a79ad9cfcfc73833027a4e1692c50f2d5a50219','client-token','batched','20210301T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210301T000000Z/reports/two-000000.blocks','words',1,'41a595a0d70a07f2','20210301T000000Z','reports',57,6121,'488554f059896dd1419716e970f29ef6473f14ac7bb07e91410b174332ea23f0','client-token','batched','20210301T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210302T000000Z/reports/one-000000.blocks','words',1,'41a595a0d70a07f2','20210302T000000Z','reports',9,1081,'2680dab8e5949cfede63af0e4efc1dfbbbb14d8d878dcc6dfcc7fb8d45eaddf1','client-token','batched','20210303T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210302T000000Z/discovery/one-000000.blocks','words',1,'41a595a0d70a07f2','20210302T000000Z','discovery',9,2098,'c9d5816bba68bdd866f4239872fc25d42d764fa1a7a6c563a7065145e648021e','client-token','too_late',NULL,'grace ended before 20210307T000000Z closed');
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210303T000000Z/reports/one-000000.blocks','words',1,'41a595a0d70a07f2','20210303T000000Z','reports',51,5491,'b388c8d403493c69e341ea057064f1d8dbff94d7ed040859af01d81d6f284847','none','batched','20210303T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210307T000000Z/reports/one-000000.blocks','words',1,'41a595a0d70a07f2','20210307T000000Z','reports',54,5806,'839a227346a85b059be5b0af972572cef808aa0b9d11bfdeb72a44fb001e56f6','client-token','batched','20210307T000000Z-000001-41a595a0d70a07f2',NULL);
INSERT INTO "segments" VALUES('words/000001-41a595a0d70a07f2/20210311T000000Z/reports/one-000000.blocks','words',1,'41a595a0d70a07f2','20210311T000000Z','reports',12,1396,'c4d74e98e6fc22ba77a52c4a30f1978da89f320e8ac02a454a68de9aef2a9eac','client-token','too_late',NULL,'grace ended, and no window closed');
CREATE TABLE windows (
	campaign VARCHAR NOT NULL, 
	window VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds INTEGER NOT NULL, 
	PRIMARY KEY (campaign, window)
);
INSERT INTO "windows" VALUES('words','20210301T000000Z','2026-11-22T20:44:22.545559+00:00',86400);
INSERT INTO "windows" VALUES('words','20210302T000000Z','2026-11-22T20:44:22.545559+00:00',86400);
INSERT INTO "windows" VALUES('words','20210303T000000Z','2026-11-22T20:44:22.545559+00:00',86400);
INSERT INTO "windows" VALUES('words','20210307T000000Z','2026-11-22T20:44:22.545559+00:00',86400);
INSERT INTO "windows" VALUES('words','20210311T000000Z','2026-11-22T20:44:22.545559+00:00',86400);
COMMIT;
