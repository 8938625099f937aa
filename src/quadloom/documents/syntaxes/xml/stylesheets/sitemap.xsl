<?xml version="1.0" encoding="UTF-8"?>
<!-- Sitemaps (urlset and sitemapindex) as RDF. Says the same as quadloom/syntaxes/feeds/sitemaps.py but for extensions. -->
<xsl:stylesheet version="1.0"
    xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt"
    xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:dcterms="http://purl.org/dc/terms/"
    exclude-result-prefixes="ql sm">
  <xsl:param name="url"/>

  <xsl:template match="/">
    <rdf:RDF>
      <rdf:Description rdf:about="{$url}">
        <xsl:for-each select="*/*[sm:loc]">
          <dcterms:hasPart rdf:resource="{ql:resolve(sm:loc, $url)}"/>
        </xsl:for-each>
      </rdf:Description>
      <xsl:for-each select="*/*[sm:loc and sm:lastmod]">
        <rdf:Description rdf:about="{ql:resolve(sm:loc, $url)}">
          <dcterms:modified rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">
            <xsl:value-of select="ql:date-time(sm:lastmod)"/>
          </dcterms:modified>
        </rdf:Description>
      </xsl:for-each>
    </rdf:RDF>
  </xsl:template>
</xsl:stylesheet>
