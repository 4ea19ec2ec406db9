"""The index pipeline: normalize, judge, enrich, embed and publish the tools of servers."""
